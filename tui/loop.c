/* SPDX-License-Identifier: MIT */
/*
 * One thread, one wait: for the keyboard, and for one descriptor that gathers
 * the session and the signals that end us. It sleeps whenever there is
 * nothing to do, but wakes each second while the program runs, to say for
 * how long.
 *
 * INT, TERM, HUP and QUIT are taken here, so that the program we watch is
 * ended with us; the terminal itself minds those that cannot wait.
 */
#include "tui/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tui/cells.h"
#include "tui/keys.h"
#include "tui/progress.h"
#include "tui/start.h"
#include "tui/terminal.h"
#include "tui/view.h"

/*
 * Most calls answer at once: a frame waits this long for the next stop, so
 * that the screen does not flicker between "stopped" and "running".
 */
#define SETTLE_MS 12
/* The shortest time between frames that no key has asked for. */
#define FRAME_MS  30

struct loop {
	const struct menu *menu;
	const struct options *options;
	struct model model;
	struct cells *cells;
	int epoll;
	int signals; /* signalfd */
	int row; /* what runs: a lesson, or -1: the program of the options */
	int ended_by;     /* the signal; 0: none */
	long drawn, took; /* when the last frame was, in ms, and how long */
};

/* The one that runs, for the exit handler: exit() must end the program too. */
static struct loop *running;

static void end_program(void)
{
	if (running && running->model.session)
		model_attach(&running->model, NULL, NULL, -1);
	running = NULL;
}

/* --- starting ------------------------------------------------------------- */

static void watch(struct loop *loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* The name for the title: of a lesson its own, else the program's. */
static const char *program_name(const struct loop *loop, int row)
{
	const char *path = row >= 0 ? loop->menu->lesson[row].name
				    : loop->options->rest[0];
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_running(const struct loop *loop)
{
	return loop->model.session &&
	       loop->model.session->state == SESSION_RUNNING;
}

/* Lets what was just asked for happen before the next frame. */
static void settle(struct loop *loop)
{
	struct session *session = loop->model.session;

	if (!session)
		return;
	for (int i = 0; i < 4 && session->state == SESSION_RUNNING; i++)
		session_wait(session, SETTLE_MS / 4);
	if (model_update(&loop->model))
		snprintf(loop->model.message, sizeof(loop->model.message),
			 "no memory for the history");
}

/* Says in the message row what is wrong, and frees it. */
static void complain(struct loop *loop, char *why)
{
	if (why)
		snprintf(loop->model.message, sizeof(loop->model.message), "%s",
			 why);
	free(why);
}

static void set_done(struct loop *loop, int row, bool done)
{
	const struct menu *menu = loop->menu;

	if (row < 0 || row >= menu->lessons || menu->lesson[row].done == done)
		return;
	menu->lesson[row].done = done;
	complain(loop, progress_write(menu->lesson, menu->lessons));
}

/* A lesson is done when it has ended well and its last step was shown. */
static void look_for_done(struct loop *loop)
{
	struct model *model = &loop->model;
	int step, steps;

	if (!model->session || model->session->state != SESSION_EXITED ||
	    model->session->status || !model_present(model))
		return;
	model_step_count(model, &step, &steps);
	if (steps && step == steps)
		set_done(loop, loop->row, true);
}

static void start(struct loop *loop, int row)
{
	struct model *model = &loop->model;
	struct session *session;
	char *why;

	/* What runs may hold what the next one needs. */
	if (model->session)
		model_attach(model, NULL, NULL, -1);
	session = start_session(loop->menu, loop->options, row, &why);
	if (!session) {
		snprintf(model->message, sizeof(model->message), "%s",
			 why ? why : "no memory");
		free(why);
		return;
	}
	if (model_attach(model, session, program_name(loop, row), row)) {
		snprintf(model->message, sizeof(model->message), "no memory");
		return;
	}
	loop->row = row;
	watch(loop, session->fd);
	/* The first stop takes longer: a program has to be loaded. */
	session_wait(session, 200);
	settle(loop);
}

/* --- turning -------------------------------------------------------------- */

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * How long the next frame has to wait, in ms: while a program floods us with
 * news, no more frames than can be seen, and at least half of the time for
 * taking them in.
 */
static int frame_wait(const struct loop *loop)
{
	long pause = loop->took > FRAME_MS ? loop->took : FRAME_MS;
	long wait = loop->drawn + pause - now_ms();

	return wait > 0 ? (int)wait : 0;
}

static void draw(struct loop *loop)
{
	long began = now_ms();
	int rows, columns;

	terminal_size(&rows, &columns);
	if (!loop->cells || loop->cells->rows != rows ||
	    loop->cells->columns != columns) {
		cells_free(loop->cells);
		loop->cells = cells_new(rows, columns);
	}
	if (!loop->cells)
		return;
	loop->model.height = rows;
	loop->model.width = columns;
	look_for_done(loop);
	view_draw(loop->cells, &loop->model);
	terminal_show(loop->cells);
	loop->drawn = now_ms();
	loop->took = loop->drawn - began;
}

/* False: the end. */
static bool act(struct loop *loop, enum keys_result result)
{
	struct model *model = &loop->model;

	switch (result) {
	case KEYS_START:
		start(loop, model->menu);
		break;
	case KEYS_RESTART:
		start(loop, loop->row);
		break;
	case KEYS_MENU:
		if (loop->row >= 0)
			model->menu = loop->row;
		model_attach(model, NULL, NULL, -1);
		break;
	case KEYS_FORGET:
		set_done(loop, model->menu, false);
		break;
	case KEYS_REDRAW:
		terminal_redraw();
		break;
	case KEYS_QUIT:
		return false;
	case KEYS_DRAW:
		break;
	}
	return true;
}

/* Takes the keys that are there; false: the end. */
static bool take_keys(struct loop *loop, bool *changed)
{
	int code;

	while ((code = terminal_key()) != KEYS_NONE) {
		bool ran = is_running(loop);

		*changed = true;
		if (!act(loop, keys_press(&loop->model, code)))
			return false;
		if (!ran)
			settle(loop);
	}
	return true;
}

static bool take_signal(struct loop *loop)
{
	struct signalfd_siginfo info;

	if (read(loop->signals, &info, sizeof(info)) != sizeof(info))
		return false;
	loop->ended_by = (int)info.ssi_signo;
	return true;
}

/* How long to wait for something to do; `late`: a frame is due. */
static int patience(const struct loop *loop, bool late)
{
	if (late)
		return frame_wait(loop);
	return is_running(loop) ? 1000 : -1;
}

static void turn(struct loop *loop)
{
	struct model *model = &loop->model;
	bool pressed = true, news = false;

	while (take_keys(loop, &pressed)) {
		if (pressed || (news && !frame_wait(loop))) {
			draw(loop);
			pressed = news = false;
		}
		terminal_wait(loop->epoll, patience(loop, news));
		if (take_signal(loop))
			return;
		if (model->session && session_dispatch(model->session)) {
			if (model_update(model))
				snprintf(model->message, sizeof(model->message),
					 "no memory for the history");
			news = true;
		}
	}
}

static int open_all(struct loop *loop, const char *lang)
{
	const char *why = NULL;

	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	loop->signals = start_ending_signals();
	if (loop->epoll < 0 || loop->signals < 0 ||
	    model_init(&loop->model, loop->menu->lesson, loop->menu->lessons,
		       lang) ||
	    menu_add_source_dirs(loop->menu, &loop->model)) {
		fprintf(stderr, "verbstep: %s\n", strerror(errno));
		return 1;
	}
	watch(loop, loop->signals);
	if (terminal_open(loop->options->ascii, &why)) {
		fprintf(stderr,
			"verbstep: %s; for text: verbstep step --batch ...\n",
			why);
		return 2;
	}
	running = loop;
	atexit(end_program);
	return 0;
}

int loop_run(const struct menu *menu, const struct options *options,
	     const char *lang, int row)
{
	struct loop loop = { .menu = menu,
			     .options = options,
			     .epoll = -1,
			     .signals = -1,
			     .row = -1 };
	int status = open_all(&loop, lang);

	if (!status) {
		if (row >= 0)
			loop.model.menu = row;
		if (row >= 0 || options->rest)
			start(&loop, row);
		complain(&loop, progress_read(menu->lesson, menu->lessons));
		turn(&loop);
		terminal_close();
		status = loop.ended_by ? 128 + loop.ended_by : 0;
	}
	running = NULL;
	model_free(&loop.model);
	cells_free(loop.cells);
	if (loop.signals >= 0)
		close(loop.signals);
	if (loop.epoll >= 0)
		close(loop.epoll);
	return status;
}
