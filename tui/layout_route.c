/* SPDX-License-Identifier: MIT */
/*
 * The lines. Each box with children has one net: a line down from it, a bus
 * below its row, lines down to its children there, and, when there are
 * children further down, one line (trunk) through a gap of the next row to
 * the bus below that. Between two rows of boxes lies a channel; a column of a
 * channel belongs to one net, so lines down never cover each other, and buses
 * that overlap get rows (tracks) of their own.
 */
#include "tui/layout_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CROWDED 12 /* columns of a detour that a free neighbour is worth */

struct net {
	int place;       /* the parent */
	int first, last; /* rows of the parent and of the lowest child */
	bool cut;        /* no way further down was found */
	int top;         /* the column where it enters the channel */
	int low, high;   /* its columns in the channel */
	int bottoms;     /* lines that leave the channel downwards */
	int track;
};

struct pin {
	int net, column;
	bool top;
	int place; /* the box it ends in; -1: a trunk, or from above */
};

struct routing {
	const struct plan *plan;
	struct layout *layout;
	int columns;
	struct net *net;
	int nets;
	int *net_of; /* of each place; -1 */
	/* Of the channel at work: */
	int *active; /* nets in it, from the upper track to the lower */
	int actives;
	struct pin *pin;
	int pins;
	int *owner;  /* of each column: net + 1; 0: nobody */
	bool *taken; /* columns that the boxes of the lower row keep */
	int lines_room;
};

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

static void add_pin(struct routing *routing, int net, int column, bool top,
		    int place)
{
	struct net *at = &routing->net[net];

	routing->pin[routing->pins++] = (struct pin){
		.net = net, .column = column, .top = top, .place = place
	};
	routing->owner[column] = net + 1;
	if (top) {
		at->low = at->high = column;
		at->bottoms = 0;
		return;
	}
	at->bottoms++;
	if (column < at->low)
		at->low = column;
	if (column > at->high)
		at->high = column;
}

/* Does a neighbour column belong to another net? */
static bool is_crowded(const struct routing *routing, int net, int column)
{
	int left = column ? routing->owner[column - 1] : 0;
	int right =
		column + 1 < routing->columns ? routing->owner[column + 1] : 0;

	return (left && left != net + 1) || (right && right != net + 1);
}

static bool is_open(const struct routing *routing, int net, int column)
{
	return !routing->owner[column] || routing->owner[column] == net + 1;
}

/* Where the net's trunk passes the lower row: a free column, or -1. */
static int trunk_column(const struct routing *routing, int net, int target)
{
	int best = -1, least = 0;

	for (int column = 0; column < routing->columns; column++) {
		if (routing->taken[column] || !is_open(routing, net, column))
			continue;
		int cost = abs(column - routing->net[net].top) +
			   abs(column - target) +
			   CROWDED * is_crowded(routing, net, column);
		if (best < 0 || cost < least) {
			best = column;
			least = cost;
		}
	}
	return best;
}

/* Where a net enters a box of the lower row from above, or -1. */
static int port_column(const struct routing *routing, int net,
		       const struct place *place)
{
	int best = -1, least = 0;
	int middle = place->column + place->base / 2;
	int from = routing->net[net].top;

	for (int column = place->column;
	     column < place->column + place->base && column < routing->columns;
	     column++) {
		if (!is_open(routing, net, column))
			continue;
		/* Straight down is best; else the middle, or the near side
		 * where several nets share the box. */
		int cost = column == from        ? -100
			   : place->parents == 1 ? abs(column - middle)
						 : abs(column - from);
		cost += CROWDED * is_crowded(routing, net, column);
		cost += 8 * (column == place->column ||
			     column == place->column + place->base - 1);
		if (best < 0 || cost < least) {
			best = column;
			least = cost;
		}
	}
	return best;
}

/* The middle of the net's children below `row`; how many there are. */
static int below(const struct routing *routing, int net, int row, int *target)
{
	const struct plan *plan = routing->plan;
	int count = 0;
	long sum = 0;

	for (int i = routing->net[net].place + 1; i < plan->places; i++) {
		const struct place *child = &plan->place[i];

		if (child->hidden || child->row <= row)
			continue;
		for (int k = 0; k < child->parents; k++) {
			if (child->parent[k] != routing->net[net].place)
				continue;
			sum += child->column + child->base / 2;
			count++;
		}
	}
	*target = count ? (int)(sum / count) : 0;
	return count;
}

static void pins_of_row(struct routing *routing, int row)
{
	const struct plan *plan = routing->plan;

	for (int i = 0; i < plan->places; i++) {
		const struct place *place = &plan->place[i];

		if (place->hidden || place->row != row)
			continue;
		for (int k = 0; k < place->parents; k++) {
			int net = routing->net_of[place->parent[k]];

			if (net < 0 || routing->net[net].cut)
				continue;
			int column = port_column(routing, net, place);
			if (column < 0)
				routing->layout->unrouted++;
			else
				add_pin(routing, net, column, false, i);
		}
	}
}

/* Finds the columns of every net in the channel below `row`. */
static void find_pins(struct routing *routing, int row)
{
	const struct plan *plan = routing->plan;
	size_t columns = (size_t)routing->columns;

	memset(routing->owner, 0, columns * sizeof(*routing->owner));
	memset(routing->taken, 0, columns * sizeof(*routing->taken));
	routing->pins = routing->actives = 0;
	for (int i = 0; i < plan->places; i++) {
		const struct place *place = &plan->place[i];
		if (place->hidden || place->row != row + 1)
			continue;
		for (int c = place->column;
		     c < place->column + place->width && c < routing->columns;
		     c++)
			routing->taken[c] = true;
	}
	for (int i = 0; i < routing->nets; i++) {
		struct net *net = &routing->net[i];
		if (net->cut || net->first > row || net->last <= row)
			continue;
		if (net->first == row)
			net->top = plan->place[net->place].column +
				   plan->place[net->place].base / 2;
		if (net->top >= routing->columns)
			net->top = routing->columns - 1;
		add_pin(routing, i, net->top, true, -1);
		routing->active[routing->actives++] = i;
	}
	pins_of_row(routing, row + 1);
}

/* Takes the nets that have children further down through the next row. */
static void find_trunks(struct routing *routing, int row)
{
	for (int a = 0; a < routing->actives; a++) {
		struct net *net = &routing->net[routing->active[a]];
		int target, children;

		if (net->last <= row + 1)
			continue;
		children = below(routing, routing->active[a], row + 1, &target);
		int column = trunk_column(routing, routing->active[a], target);
		if (column < 0) {
			net->cut = true;
			routing->layout->unrouted += children;
			continue;
		}
		add_pin(routing, routing->active[a], column, false, -1);
	}
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
		find_pins(routing, row);
		find_trunks(routing, row);
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
