# SPDX-License-Identifier: MIT
#
# make setup run     installs what is missing, builds, opens the tutorial
# make setup check   the same, and runs every test
# make help          all targets
#
# Everything built lands in $(BUILD).

VERSION := 0.1
BUILD   ?= build
# One name for it: dependencies are noted under the name of the day.
override BUILD := $(patsubst $(CURDIR)/%,%,$(BUILD))
prefix  ?= /usr/local

CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra
# -D_GNU_SOURCE: the project is C11 with GNU extensions throughout.
CPPFLAGS_ALL := -I. -I$(BUILD)/gen -D_GNU_SOURCE -DVERSION='"$(VERSION)"'
# A call in tail position would report its caller's line to the probe.
CFLAGS_ALL := -std=gnu11 $(WARN) -fPIC -fvisibility=hidden \
	-fno-optimize-sibling-calls -pthread $(CFLAGS)

ifdef FUZZ
CFLAGS_ALL += -fsanitize=fuzzer-no-link,address,undefined \
	-fno-sanitize-recover=undefined
LDFLAGS += -fsanitize=fuzzer,address,undefined
else ifdef TSAN
# It doesn't understand fences, which are between processes here: gcc warns.
CFLAGS_ALL += -fsanitize=thread $(if $(findstring clang,$(CC)),,-Wno-tsan)
LDFLAGS += -fsanitize=thread
else ifdef SANITIZE
CFLAGS_ALL += -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
LDFLAGS += -fsanitize=address,undefined
else
# clang leaves the sanitizers' own symbols undefined in a library.
NO_UNDEFINED := -Wl,-z,defs
endif

PKG_CONFIG ?= pkg-config
pkg = $(shell $(PKG_CONFIG) --silence-errors $(1) $(2))
LIBS_IBVERBS := -libverbs
LIBS_DW      = $(or $(call pkg,--libs,libdw),-ldw)
LIBS_JSON    = $(or $(call pkg,--libs,jansson),-ljansson)
LIBS_MD      = $(or $(call pkg,--libs,md4c),-lmd4c)
LIBS_CURSES  = $(or $(call pkg,--libs,ncursesw),-lncursesw -ltinfo)
LIBS_CMOCKA  = $(or $(call pkg,--libs,cmocka),-lcmocka)

objs = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))
room = $(call objs,$(wildcard $(1)/*.c))

rules_o   := $(call room,common/rules)
words_o   := $(call objs,$(filter-out common/words/embed.c,\
	$(wildcard common/words/*.c))) $(BUILD)/obj/gen/chapters.o
lesson_o  := $(call room,common/lesson)
manager_o := $(call room,common/manager)
soft_o    := $(call room,common/soft)
probe_o   := $(call room,common/probe)
trace_o   := $(call room,common/trace)
tui_o     := $(call objs,$(filter-out tui/main.c,$(wildcard tui/*.c)))

lessons   := $(patsubst lessons/%.c,$(BUILD)/lessons/%,$(wildcard lessons/*.c))
softlib   := $(BUILD)/libsoftverbs.so
probelib  := $(BUILD)/libverbprobe.so
verbstep  := $(BUILD)/verbstep
chapters  := $(wildcard docs/*/[0-9]*.md)
programs  := $(patsubst tests/programs/%.c,$(BUILD)/tests/programs/%,\
	$(wildcard tests/programs/*.c))
unit_src  := $(wildcard tests/unit/test_*.c)
units     := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(unit_src))
benches   := $(patsubst tests/bench/%.c,$(BUILD)/tests/bench/%,\
	$(wildcard tests/bench/*.c))
conform   := $(BUILD)/tests/conformance/conformance
soak      := $(BUILD)/tests/soak/soak
fuzzers   := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/fuzz/%,\
	$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: all run check asan bench install uninstall clean format help setup \
	soft probe lessons verbstep units kernel-lab kernel-check \
	conformance devices soak tsan soft-units fuzz fuzzers the-fuzzers
.DELETE_ON_ERROR:
.PRECIOUS: $(BUILD)/obj/%.o $(BUILD)/gen/%.c

all: lessons soft probe verbstep

lessons: $(lessons)
soft: $(softlib)
probe: $(probelib)
verbstep: $(verbstep)
units: $(units) $(programs) $(conform) $(soak)
conformance: $(conform)

setup:
	@sh common/build/setup

run: all
	@sh common/build/run $(BUILD)

check: all units
	@sh tests/run $(BUILD)

# The sanitizers need every object built anew: a build folder of their own.
asan:
	$(MAKE) BUILD=$(BUILD)/asan SANITIZE=1 check

# soft0's tests under the thread sanitizer.
tsan:
	$(MAKE) BUILD=$(BUILD)/tsan TSAN=1 soft-units
	@sh tests/tsan $(BUILD)/tsan

soft-units: $(filter $(BUILD)/tests/unit/test_soft_%,$(units)) $(soak)

# Each fuzz target for so long; libFuzzer is clang's.
FUZZ_SECONDS ?= 600
fuzz: fuzzers
	@sh tests/fuzz/run $(BUILD)/fuzz $(FUZZ_SECONDS)

fuzzers:
	$(MAKE) BUILD=$(BUILD)/fuzz CC=clang CFLAGS='-O1 -g' FUZZ=1 \
		the-fuzzers

the-fuzzers: $(fuzzers) $(BUILD)/tests/fuzz/seeds

# The kernel's own drivers, in a guest.
kernel-lab:
	@sh tests/kernel/lab $(BUILD)

kernel-check: all $(BUILD)/tests/kernel/graph
	@BUILD=$(abspath $(BUILD)) prove --timer -v -e '' tests/kernel/check

# docs/devices.md, out of a run on soft0 here and on the drivers in guests.
devices: $(softlib) $(conform)
	@BUILD=$(abspath $(BUILD)) tests/conformance/compare --write

# Ten million messages between two processes: some minutes.
soak: $(soak)
	$(soak)

bench: all $(benches)
	@sh tests/bench/run $(BUILD)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(BUILD)/embed: common/words/embed.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $<

$(BUILD)/gen/chapters.c: $(BUILD)/embed $(chapters)
	@mkdir -p $(@D)
	$(BUILD)/embed $(chapters) > $@.new
	mv $@.new $@

# soft0 and the probe find libibverbs' own functions behind theirs: it must
# be loaded, though nothing in them names it.
$(softlib): $(soft_o) $(rules_o)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared $(NO_UNDEFINED) -Wl,-soname,libsoftverbs.so \
		-o $@ $^ -Wl,--no-as-needed $(LIBS_IBVERBS)

$(probelib): $(probe_o) $(rules_o)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared $(NO_UNDEFINED) -Wl,-soname,libverbprobe.so \
		-o $@ $^ -Wl,--no-as-needed $(LIBS_IBVERBS) $(LIBS_DW)

# soft0 goes ahead of libibverbs: its definitions are found first.
rpath = -Wl,-rpath,'$$ORIGIN/$(1)'
link_soft = -L$(BUILD) -Wl,--no-as-needed -lsoftverbs $(LIBS_IBVERBS) \
	-Wl,--as-needed

$(BUILD)/lessons/%: $(BUILD)/obj/lessons/%.o $(lesson_o) $(manager_o) \
		$(words_o) $(rules_o) $(softlib)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(call rpath,..) $(link_soft) $(LIBS_MD)

$(verbstep): $(BUILD)/obj/tui/main.o $(tui_o) $(trace_o) $(words_o) $(rules_o)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS_JSON) $(LIBS_MD) \
		$(LIBS_CURSES)

# A unit test's second word names the room that it tests and is linked with.
unit_rules   = $(rules_o)
unit_words   = $(words_o)
unit_trace   = $(trace_o) $(rules_o)
unit_tui     = $(tui_o) $(trace_o) $(words_o) $(rules_o)
unit_soft    = $(rules_o)
unit_lesson  = $(lesson_o) $(words_o) $(rules_o)
unit_manager = $(manager_o)
unit_probe   = $(trace_o) $(rules_o)
unit_room    = $(word 2,$(subst _, ,$(1)))

.SECONDEXPANSION:
$(BUILD)/tests/unit/%: $(BUILD)/obj/tests/unit/%.o $(softlib) \
		$$(unit_$$(call unit_room,$$*))
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(call rpath,../..) $(link_soft) $(LIBS_CMOCKA) $(LIBS_JSON) \
		$(LIBS_MD) $(LIBS_CURSES)

# Small verbs programs that are no lessons and know nothing of soft0.
$(BUILD)/tests/programs/%: $(BUILD)/obj/tests/programs/%.o
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $< $(LIBS_IBVERBS)

$(BUILD)/tests/kernel/graph: $(BUILD)/obj/tests/kernel/graph.o $(trace_o) \
		$(rules_o)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS_JSON)

# A benchmark of a room is linked with it, as that room's unit tests are.
bench_history = $(unit_tui)

$(BUILD)/tests/bench/%: $(BUILD)/obj/tests/bench/%.o $(softlib) $$(bench_$$*)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(call rpath,../..) $(link_soft) -lutil \
		$(if $(bench_$*),$(LIBS_JSON) $(LIBS_MD) $(LIBS_CURSES))

# What they test is linked into them: what it hides they can reach, too.
fuzz_event  = $(trace_o) $(rules_o)
fuzz_packet = $(soft_o) $(rules_o)
fuzz_engine = $(soft_o) $(rules_o)
# The engine's packets go through a wire of the fuzzer's, in its time.
$(BUILD)/tests/fuzz/fuzz_engine: LDFLAGS += -Wl,--wrap=soft_carrier_send \
	-Wl,--wrap=clock_gettime

$(fuzzers): $(BUILD)/tests/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $$($$*)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $^ $(LIBS_IBVERBS) $(LIBS_JSON)

$(BUILD)/tests/fuzz/seeds: tests/fuzz/seeds.c common/soft/record.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CPPFLAGS) -std=gnu11 $(WARN) $(CFLAGS) -o $@ $^

$(soak): $(call room,tests/soak) $(softlib)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(call rpath,../..) $(link_soft)

$(conform): $(call room,tests/conformance) $(rules_o) $(softlib)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) -o $@ $(filter %.o,$^) \
		$(call rpath,../..) $(link_soft)

# lessons/ stands below the libraries, as in $(BUILD): one rpath serves both.
libdir   = $(DESTDIR)$(prefix)/lib/verbstep
sharedir = $(DESTDIR)$(prefix)/share/verbstep
mandir   = $(DESTDIR)$(prefix)/share/man/man1

install: all
	install -d $(DESTDIR)$(prefix)/bin $(libdir)/lessons $(sharedir)/lessons \
		$(mandir)
	install $(verbstep) $(DESTDIR)$(prefix)/bin
	install -m 644 $(softlib) $(probelib) $(libdir)
	install $(lessons) $(libdir)/lessons
	install -m 644 lessons/*.c $(sharedir)/lessons
	install -m 644 docs/verbstep.1 $(mandir)

uninstall:
	rm -f $(DESTDIR)$(prefix)/bin/verbstep $(mandir)/verbstep.1
	rm -rf $(libdir) $(sharedir)

clean:
	rm -rf $(BUILD)

format:
	git ls-files '*.c' '*.h' | xargs clang-format -i

help:
	@sed -n 's/^# \{0,1\}//; 3,8p' Makefile
	@printf '%s\n' \
	'all        the lessons, soft0, the probe and the stepper' \
	'run        opens the tutorial; without a terminal, runs it as text' \
	'check      every test' \
	'asan       every test under the address and undefined sanitizers' \
	'tsan       the tests of soft0 under the thread sanitizer' \
	'bench      the benchmarks, each a ratio beside an alternative' \
	'fuzz       each fuzz target for FUZZ_SECONDS (600); needs clang' \
	'soak       10^7 messages between two processes, every byte checked' \
	'kernel-lab    guests with the real rxe and siw drivers, of packages' \
	'kernel-check  every lesson in those guests' \
	'conformance   the program that asks a device about each rule' \
	'devices       docs/devices.md, of runs of it on soft0 and in guests' \
	'install    into $$(DESTDIR)$$(prefix), default /usr/local' \
	'uninstall  takes out what install put there' \
	'clean      removes $(BUILD)' \
	'format     clang-format over every source' \
	'setup      installs the packages that a build and the tests need'

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
