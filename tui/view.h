/* SPDX-License-Identifier: MIT */
/*
 * Draws a model into cells: a pure function of both (but for the model's
 * source cache). Any size from 1x1; below 80x24 what matters most is kept,
 * and under 40x8 a message asks for more room.
 */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "tui/cells.h"
#include "tui/model.h"

void view_draw(struct cells *cells, struct model *model);

/*
 * The rows and columns a pane has in a screen of this size, for paging and
 * for keeping cursors in view; 0x0 when it is not shown.
 */
struct cells_area view_pane(const struct model *model, int rows, int columns,
			    enum model_pane pane);

#endif
