/* SPDX-License-Identifier: MIT */
/*
 * The terminal by ncurses, and its way back. ncurses restores the screen on
 * TERM, INT and TSTP only, and with functions that no signal handler may
 * call: here what takes the terminal back is prepared as bytes when it is
 * opened, and a handler does no more than write them.
 */
#define NCURSES_WIDECHAR 1
#include "tui/terminal.h"

#include <curses.h>
#include <term.h>
/* Macros of term.h that are words of ours. */
#undef lines
#undef columns

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "tui/keys.h"

/* Colours: STYLE_GOOD, _BAD, _WARN, _ACCENT as pairs 1 to 4. */
#define PAIRS 4

static const int ending_signals[] = { SIGHUP,  SIGINT,  SIGQUIT,
				      SIGTERM, SIGABRT, SIGSEGV,
				      SIGBUS,  SIGFPE,  SIGILL };

/* One per process, because the terminal is, and handlers must reach it. */
static struct {
	volatile sig_atomic_t open;
	volatile sig_atomic_t continued; /* SIGCONT came */
	SCREEN *screen;
	bool utf8, colors;
	struct termios saved;
	char restore[256]; /* what the terminal is sent to be as it was */
	size_t restore_length;
	int held;      /* a file that holds what stderr was sent; -1: none */
	int error;     /* the real stderr, while it is held */
	sigset_t mask; /* the signals that terminal_wait() lets in */
} terminal = { .held = -1, .error = -1 };

/* A capability of the terminal, NULL when it has none. */
static char *capability(const char *name)
{
	char *text = tigetstr(name);

	return text == (char *)-1 ? NULL : text;
}

/* Adds a sequence to the bytes, without its padding "$<5>". */
static void add_restore(const char *text)
{
	if (!text)
		return;
	while (*text && terminal.restore_length < sizeof(terminal.restore)) {
		if (text[0] == '$' && text[1] == '<' && strchr(text, '>')) {
			text = strchr(text, '>') + 1;
			continue;
		}
		terminal.restore[terminal.restore_length++] = *text++;
	}
}

static void prepare_restore(void)
{
	terminal.restore_length = 0;
	add_restore(capability("sgr0"));
	add_restore(capability("op"));
	add_restore(capability("cnorm"));
	add_restore(capability("rmkx"));
	if (capability("rmcup")) {
		add_restore(capability("rmcup"));
		return;
	}
	/* Without a second screen, the prompt goes below this one. */
	add_restore(
		tparm(capability("cup"), 998L, 0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L));
	add_restore("\r\n");
}

/* Keeps what libraries write to stderr off the screen. */
static void hold_stderr(void)
{
	if (!isatty(STDERR_FILENO))
		return;
	terminal.held = memfd_create("stderr", MFD_CLOEXEC);
	if (terminal.held < 0)
		return;
	terminal.error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (terminal.error < 0 ||
	    dup2(terminal.held, STDERR_FILENO) != STDERR_FILENO) {
		close(terminal.held);
		terminal.held = -1;
	}
}

/* Gives stderr back and writes what it was sent. For handlers too. */
static void replay_stderr(void)
{
	char bytes[512];
	ssize_t n;

	if (terminal.held < 0)
		return;
	dup2(terminal.error, STDERR_FILENO);
	lseek(terminal.held, 0, SEEK_SET);
	while ((n = read(terminal.held, bytes, sizeof(bytes))) > 0)
		if (write(STDERR_FILENO, bytes, (size_t)n) != n)
			break;
	close(terminal.held);
	close(terminal.error);
	terminal.held = terminal.error = -1;
}

/* Async-signal-safe: the terminal as it was, without curses. */
static void on_ending_signal(int number)
{
	int err = errno;

	if (terminal.open) {
		terminal.open = 0;
		ssize_t n = write(STDOUT_FILENO, terminal.restore,
				  terminal.restore_length);
		(void)n; /* nothing is left to be done about it */
		tcsetattr(STDIN_FILENO, TCSANOW, &terminal.saved);
		replay_stderr();
	}
	/* SA_RESETHAND: this time the signal ends the process. */
	raise(number);
	errno = err;
}

static void on_continue(int number)
{
	(void)number;
	terminal.continued = 1;
}

/* A signal that was ignored when we started (nohup) stays so. */
static void install(int number, void (*handler)(int), int flags)
{
	struct sigaction old,
		action = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&action.sa_mask);
	if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(number, &action, NULL);
}

static void install_handlers(void)
{
	/* A stack that has run over cannot run its own handler. */
	static char stack[32768];
	stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) }, old;
	sigset_t resize;

	if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE))
		sigaltstack(&own, NULL);
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(int); i++)
		install(ending_signals[i], on_ending_signal,
			SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
	install(SIGCONT, on_continue, 0);

	/* Let in by terminal_wait() alone: else one could come just before. */
	sigemptyset(&resize);
	sigaddset(&resize, SIGWINCH);
	sigprocmask(SIG_BLOCK, &resize, &terminal.mask);
	sigdelset(&terminal.mask, SIGWINCH);
}

static void start_colors(void)
{
	static const short color[PAIRS] = { COLOR_GREEN, COLOR_RED,
					    COLOR_YELLOW, COLOR_CYAN };
	const char *no_color = getenv("NO_COLOR");

	terminal.colors = false;
	if ((no_color && *no_color) || !has_colors() || start_color() != OK)
		return;
	short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
	for (short i = 0; i < PAIRS; i++)
		init_pair(i + 1, color[i], background);
	terminal.colors = true;
}

int terminal_open(bool ascii, const char **why)
{
	static bool at_exit;

	if (terminal.open)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &terminal.saved) != 0) {
		*why = "stdin and stdout are not both a terminal";
		return -1;
	}
	if (!getenv("ESCDELAY"))
		set_escdelay(25);
	terminal.screen = newterm(NULL, stdout, stdin);
	if (!terminal.screen) {
		*why = "TERM names no terminal that ncurses knows";
		return -1;
	}
	if (!capability("cup")) {
		endwin();
		delscreen(terminal.screen);
		*why = "this terminal (TERM) cannot place its cursor";
		return -1;
	}
	terminal.utf8 = !ascii && !strcmp(nl_langinfo(CODESET), "UTF-8");
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	intrflush(stdscr, FALSE);
	curs_set(0);
	start_colors();
	prepare_restore();
	hold_stderr();
	terminal.open = 1;
	install_handlers();
	if (!at_exit)
		at_exit = atexit(terminal_close) == 0;
	return 0;
}

void terminal_close(void)
{
	if (!terminal.open)
		return;
	if (!capability("rmcup")) {
		/* The screen stays: the prompt gets its last row. */
		move(LINES - 1, 0);
		clrtoeol();
		refresh();
	}
	endwin();
	terminal.open = 0;
	for (size_t i = 0; i < sizeof(ending_signals) / sizeof(int); i++)
		install(ending_signals[i], SIG_DFL, 0);
	install(SIGCONT, SIG_DFL, 0);
	replay_stderr();
	delscreen(terminal.screen);
	terminal.screen = NULL;
}

void terminal_size(int *rows, int *columns)
{
	getmaxyx(stdscr, *rows, *columns);
}

static attr_t attributes(unsigned int style, short *pair)
{
	attr_t attrs = A_NORMAL;

	if (style & STYLE_BOLD)
		attrs |= A_BOLD;
	if (style & STYLE_REVERSE)
		attrs |= A_REVERSE;
	if (style & STYLE_DIM)
		attrs |= A_DIM;
	if (style & STYLE_UNDERLINE)
		attrs |= A_UNDERLINE;
	*pair = 0;
	if (terminal.colors)
		*pair = style & STYLE_BAD      ? 2
			: style & STYLE_WARN   ? 3
			: style & STYLE_GOOD   ? 1
			: style & STYLE_ACCENT ? 4
					       : 0;
	return attrs;
}

static void show_row(const struct cells *cells, int row, int columns,
		     cchar_t *line)
{
	const struct cell *cell = cells->cell + (long)row * cells->columns;
	int count = 0;

	for (int i = 0; i < columns; i++) {
		wchar_t text[3] = { cells_char(&cell[i], terminal.utf8),
				    terminal.utf8 ? cell[i].over : 0 };
		short pair;
		attr_t attrs = attributes(cell[i].style, &pair);
		/* The right half: part of the character before, or blank. */
		if (!text[0] && terminal.utf8)
			continue;
		if (!text[0])
			text[0] = L' ';
		setcchar(&line[count++], text, attrs, pair, NULL);
	}
	mvadd_wchnstr(row, 0, line, count);
}

void terminal_show(const struct cells *cells)
{
	int rows, columns;

	terminal_size(&rows, &columns);
	cchar_t *line = calloc((size_t)columns + 1, sizeof(*line));
	if (!line)
		return;
	if (rows > cells->rows)
		rows = cells->rows;
	if (columns > cells->columns)
		columns = cells->columns;
	for (int row = 0; row < rows; row++)
		show_row(cells, row, columns, line);
	free(line);
	refresh();
}

void terminal_redraw(void)
{
	clearok(curscr, TRUE);
}

/* The code of one of curses' keys, KEYS_NONE for those without a meaning. */
static int key_code(wint_t key)
{
	switch (key) {
	case KEY_UP:
		return KEYS_UP;
	case KEY_DOWN:
		return KEYS_DOWN;
	case KEY_LEFT:
		return KEYS_LEFT;
	case KEY_RIGHT:
		return KEYS_RIGHT;
	case KEY_PPAGE:
		return KEYS_PAGE_UP;
	case KEY_NPAGE:
		return KEYS_PAGE_DOWN;
	case KEY_HOME:
		return KEYS_HOME;
	case KEY_END:
		return KEYS_END;
	case KEY_BTAB:
		return KEYS_BACK_TAB;
	case KEY_BACKSPACE:
		return KEYS_BACKSPACE;
	case KEY_ENTER:
		return KEYS_ENTER;
	case KEY_F(1):
		return KEYS_F1;
	case KEY_RESIZE:
		return KEYS_RESIZE;
	default:
		return KEYS_NONE;
	}
}

/* After a stop the size may be another, and nobody has told us. */
static void take_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 &&
	    size.ws_col > 0)
		resizeterm(size.ws_row, size.ws_col);
	terminal_redraw();
}

int terminal_key(void)
{
	wint_t key;
	int rc;

	if (terminal.continued) {
		terminal.continued = 0;
		take_size();
		return KEYS_RESIZE;
	}
	while ((rc = get_wch(&key)) != ERR) {
		if (rc == KEY_CODE_YES) {
			int code = key_code(key);
			if (code != KEYS_NONE)
				return code;
		} else if (key == '\n' || key == '\r') {
			return KEYS_ENTER;
		} else if (key == 8 || key == 127) {
			return KEYS_BACKSPACE;
		} else {
			return (int)key;
		}
	}
	return KEYS_NONE;
}

bool terminal_wait(int fd, int milliseconds)
{
	struct pollfd polled[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	struct timespec limit = { milliseconds / 1000,
				  milliseconds % 1000 * 1000000L };

	int n = ppoll(polled, 2, milliseconds < 0 ? NULL : &limit,
		      &terminal.mask);
	if (n <= 0)
		return false;
	if (polled[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
		/*
		 * The terminal is gone, and where HUP is ignored nobody said.
		 * Who takes HUP by other means than our handler has its turn.
		 */
		static int told;
		if (told++ > 3)
			exit(1);
		raise(SIGHUP);
		return true;
	}
	return polled[1].revents != 0;
}
