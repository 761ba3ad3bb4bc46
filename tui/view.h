/* SPDX-License-Identifier: MIT */
/*
 * Draws a model into cells. What is drawn depends on the two alone (and on
 * the source files, which the model caches). Any size from 1x1; below 80x24
 * what matters most is kept, under 40x8 a message asks for more room, and a
 * wide screen shows words, calls and output beside each other.
 */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "tui/cells.h"
#include "tui/model.h"

#define VIEW_LEAST_ROWS    8
#define VIEW_LEAST_COLUMNS 40
/* Words are never wrapped wider than this: long lines are hard to read. */
#define VIEW_PROSE_COLUMNS 78

/*
 * Fills all of `cells`. Into the model it writes what the next key needs to
 * know: length[] of the panes drawn, and the top (and cursor) of a pane that
 * follows, so that scrolling starts from what is seen.
 */
void view_draw(struct cells *cells, struct model *model);

/*
 * The rows and columns a pane has in a screen of this size, for paging and
 * for keeping cursors in view; 0x0 when it is not shown.
 */
struct cells_area view_pane(const struct model *model, int rows, int columns,
			    enum model_pane pane);

#endif
