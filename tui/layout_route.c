/* SPDX-License-Identifier: MIT */
/*
 * The lines. Each box with children has one net: a line down from it, a bus
 * below its row, lines down to its children there, and, when there are
 * children further down, one line (trunk) through a gap of the next row to
 * the bus below that. Between two rows of boxes lies a channel; a column of a
 * channel belongs to one net, so lines down never cover each other, and buses
 * that overlap get rows (tracks) of their own.
 */
#include "tui/layout_nets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_line(struct routing *routing, bool vertical, int row, int column,
		    int to)
{
	struct layout *layout = routing->layout;

	if (layout->lines == routing->lines_room) {
		int room = routing->lines_room ? routing->lines_room * 2 : 32;
		struct layout_line *line =
			realloc(layout->line, (size_t)room * sizeof(*line));
		if (!line)
			return ENOMEM;
		layout->line = line;
		routing->lines_room = room;
	}
	layout->line[layout->lines++] = (struct layout_line){
		.row = row,
		.column = column,
		.length = to - (vertical ? row : column) + 1,
		.vertical = vertical,
	};
	return 0;
}

/* How often lines cross when net `a` has its bus above that of `b`. */
static int crossings(const struct routing *routing, int a, int b)
{
	const struct net *net = routing->net;
	int count = 0;

	for (int i = 0; i < routing->pins; i++) {
		const struct pin *pin = &routing->pin[i];

		if (pin->net == a && !pin->top)
			count += pin->column >= net[b].low &&
				 pin->column <= net[b].high;
		if (pin->net == b && pin->top)
			count += pin->column >= net[a].low &&
				 pin->column <= net[a].high;
	}
	return count;
}

/*
 * Could two buses on one track be taken for one? Not when a column between
 * them stays blank.
 */
static bool is_near(const struct routing *routing, const struct net *a,
		    const struct net *b)
{
	int from = a->high < b->low ? a->high : b->high;
	int to = a->high < b->low ? b->low : a->low;

	for (int column = from + 1; column < to; column++) {
		if (!routing->owner[column])
			return false;
	}
	return true;
}

/* Orders the buses so that few lines cross. */
static void order_buses(struct routing *routing)
{
	int *active = routing->active;

	for (int i = 1; i < routing->actives; i++) {
		for (int k = i; k > 0; k--) {
			int above = active[k - 1], self = active[k];
			if (crossings(routing, above, self) <=
			    crossings(routing, self, above))
				break;
			active[k - 1] = self;
			active[k] = above;
		}
	}
}

/* May this line down stand in that column instead? */
static bool may_stand(const struct routing *routing, const struct pin *pin,
		      int column)
{
	if (column < 0 || column >= routing->columns || routing->owner[column])
		return false;
	if (pin->place < 0)
		return !routing->taken[column];
	const struct place *place = &routing->plan->place[pin->place];
	return column >= place->column && column < place->column + place->base;
}

/*
 * Four arms mean a crossing: a net's own line from above must not meet its
 * line down at one place inside its bus. Moves the latter aside.
 */
static void part_pins(struct routing *routing)
{
	for (int i = 0; i < routing->pins; i++) {
		struct pin *pin = &routing->pin[i];
		struct net *net = &routing->net[pin->net];
		int away = 1, column = -1;

		if (pin->top || pin->column != net->top ||
		    net->low == pin->column || net->high == pin->column)
			continue;
		for (; column < 0 && away < routing->columns; away++) {
			if (may_stand(routing, pin, pin->column + away))
				column = pin->column + away;
			else if (may_stand(routing, pin, pin->column - away))
				column = pin->column - away;
		}
		if (column < 0) {
			routing->layout->unrouted++;
			continue;
		}
		pin->column = column;
		routing->owner[column] = pin->net + 1;
		if (column < net->low)
			net->low = column;
		if (column > net->high)
			net->high = column;
	}
}

/* Gives the buses tracks, in their order. Returns how many tracks. */
static int find_tracks(struct routing *routing)
{
	int tracks = 0;

	part_pins(routing);
	order_buses(routing);
	for (int i = 0; i < routing->actives; i++) {
		struct net *self = &routing->net[routing->active[i]];

		self->track = 0;
		if (self->low == self->high)
			continue;
		for (int k = 0; k < i; k++) {
			const struct net *other =
				&routing->net[routing->active[k]];
			if (other->low != other->high &&
			    is_near(routing, self, other) &&
			    other->track >= self->track)
				self->track = other->track + 1;
		}
		if (self->track >= tracks)
			tracks = self->track + 1;
	}
	return tracks;
}

/* Does a line of another net go down through the track at this column? */
static bool is_crossed(const struct routing *routing, int self, int column)
{
	const struct net *mine = &routing->net[self];

	for (int i = 0; i < routing->pins; i++) {
		const struct pin *pin = &routing->pin[i];
		const struct net *net = &routing->net[pin->net];

		if (pin->net == self || pin->column != column || !net->bottoms)
			continue;
		if (net->low == net->high ||
		    (pin->top ? net->track > mine->track
			      : net->track < mine->track))
			return true;
	}
	return false;
}

/*
 * The bus in pieces, with gaps where other lines go down through it. A piece
 * of one cell would have no direction: there the bus goes through, and the
 * crossing has four arms.
 */
static int draw_bus(struct routing *routing, int self, int row)
{
	const struct net *net = &routing->net[self];
	int from = net->low, to = net->low, err = 0;

	for (int column = net->low + 1; column <= net->high && !err; column++) {
		if (is_crossed(routing, self, column))
			continue;
		bool single = column == net->high ||
			      is_crossed(routing, self, column + 1);
		if (column > to + 1 && to > from && !single) {
			err = add_line(routing, false, row, from, to);
			from = column;
		}
		to = column;
	}
	return err ? err : add_line(routing, false, row, from, to);
}

/* `upper` and `lower` are the rows of the plane that the channel joins. */
static int draw_channel(struct routing *routing, int upper, int lower)
{
	int err = 0;

	for (int i = 0; i < routing->pins && !err; i++) {
		const struct pin *pin = &routing->pin[i];
		const struct net *net = &routing->net[pin->net];
		int track = upper + 1 + net->track;

		if (!net->bottoms)
			continue;
		if (net->low == net->high && pin->top)
			err = add_line(routing, true, upper, pin->column,
				       lower);
		else if (net->low != net->high && pin->top)
			err = add_line(routing, true, upper, pin->column,
				       track);
		else if (net->low != net->high)
			err = add_line(routing, true, track, pin->column,
				       lower);
	}
	for (int i = 0; i < routing->actives && !err; i++) {
		const struct net *net = &routing->net[routing->active[i]];

		if (net->bottoms && net->low != net->high)
			err = draw_bus(routing, routing->active[i],
				       upper + 1 + net->track);
	}
	return err;
}

/* The column where each net's trunk came out is where it goes on. */
static void carry_on(struct routing *routing, int row)
{
	for (int i = 0; i < routing->pins; i++) {
		const struct pin *pin = &routing->pin[i];
		struct net *net = &routing->net[pin->net];

		/* The trunk is the last pin that a net got. */
		if (!pin->top && net->last > row + 1 && !net->cut)
			net->top = pin->column;
	}
}

static int find_nets(struct routing *routing)
{
	const struct plan *plan = routing->plan;

	for (int i = 0; i < plan->places; i++)
		routing->net_of[i] = -1;
	for (int i = 0; i < plan->places; i++) {
		const struct place *child = &plan->place[i];

		for (int k = 0; k < child->parents && !child->hidden; k++) {
			int parent = child->parent[k];

			/* An object hangs on what stands above it. */
			if (plan->place[parent].hidden ||
			    plan->place[parent].row >= child->row)
				continue;
			if (routing->net_of[parent] < 0) {
				routing->net_of[parent] = routing->nets;
				routing->net[routing->nets++] = (struct net){
					.place = parent,
					.first = plan->place[parent].row,
				};
			}
			struct net *net =
				&routing->net[routing->net_of[parent]];
			if (child->row > net->last)
				net->last = child->row;
		}
	}
	return 0;
}

static int route(struct routing *routing, int *plane_row)
{
	const struct plan *plan = routing->plan;
	int err = 0;

	plane_row[0] = 0;
	find_nets(routing);
	for (int row = 0; row + 1 < plan->rows && !err; row++) {
		layout_find_pins(routing, row);
		layout_find_trunks(routing, row);
		int tracks = find_tracks(routing);
		if (!tracks)
			tracks = routing->pins > 0;
		plane_row[row + 1] = plane_row[row] + tracks + 1;
		err = draw_channel(routing, plane_row[row], plane_row[row + 1]);
		carry_on(routing, row);
	}
	return err;
}

/* The columns that boxes and lines may use. */
static int plane_columns(const struct plan *plan)
{
	int columns = plan->columns > 0 ? plan->columns : 1;

	for (int i = 0; i < plan->places; i++) {
		const struct place *place = &plan->place[i];
		if (!place->hidden && place->column + place->width > columns)
			columns = place->column + place->width;
	}
	return columns;
}

int layout_route(struct plan *plan, struct layout *layout)
{
	struct routing routing = { .plan = plan, .layout = layout };
	size_t places = (size_t)plan->places + 1;
	int err = ENOMEM;

	routing.columns = plane_columns(plan);
	size_t columns = (size_t)routing.columns;
	int *plane_row = calloc((size_t)plan->rows + 1, sizeof(int));
	routing.net = calloc(places, sizeof(*routing.net));
	routing.net_of = calloc(places, sizeof(int));
	routing.active = calloc(places, sizeof(int));
	/* Each box has at most four pins from above, a net two more. */
	routing.pin =
		calloc(places * (LAYOUT_PARENTS + 2), sizeof(*routing.pin));
	routing.owner = calloc(columns, sizeof(int));
	routing.taken = calloc(columns, sizeof(bool));
	if (!plane_row || !routing.net || !routing.net_of || !routing.active ||
	    !routing.pin || !routing.owner || !routing.taken)
		goto out;
	err = route(&routing, plane_row);
	for (int i = 0; i < plan->places; i++) {
		if (!plan->place[i].hidden)
			plan->place[i].row = plane_row[plan->place[i].row];
	}
out:
	free(plane_row);
	free(routing.net);
	free(routing.net_of);
	free(routing.active);
	free(routing.pin);
	free(routing.owner);
	free(routing.taken);
	return err;
}
