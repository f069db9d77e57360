# SPDX-License-Identifier: Apache-2.0
#
# One Makefile for the whole house. Sources are found by wildcard:
#
#   {base,cql,protocol,storage,cluster,server}/*.c   build/libhelenus.a (all but server/main.c)
#   server/main.c                                    build/helenusd
#   tools/nodetool*.c, tools/stress*.c               build/nodetool, build/helenus-stress
#   tests/unit/<folder>/<name>_test.c                build/unit/<folder>/<name>_test, a Check program;
#                                                    other .c files there are linked with each of them
#   tests/fuzz/<name>_fuzz.c                         build/fuzz/<name>_fuzz (libFuzzer), and
#                                                    build/replay/<name>_fuzz that runs the corpus
#   tests/{sim,crash,cluster,oracle,bench,interop}/*.c   build/<same>/<name>: programs of their own
#
# The parts of `make check` are tests/run's; see tests/README.md. Everything built lies in build/
# (or BUILD=...), so that sanitizer builds live beside the plain one.

.DEFAULT_GOAL := all
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory --no-builtin-rules
.SUFFIXES:

BUILD ?= build
JOBS ?= $(shell nproc)

# ---- Configuration: configure runs by itself where it is needed ------------------------------------

goals := $(or $(MAKECMDGOALS),all)
no_config_goals := clean distclean format lint-floors lint-shell deps
ifneq ($(filter-out $(no_config_goals),$(goals)),)
include config.mk
endif

# `make run` and the checks are promised to work on a fresh machine; the others only say what is
# missing and leave the machine alone.
ifneq ($(filter run check check-% interop oracle asan tsan fuzz bench bench-% lint,$(goals)),)
install_deps := build-aux/install-deps build
else
install_deps := :
endif

config.mk: configure.ac config.mk.in configure
	@$(install_deps)
	@if test -x config.status; then \
		eval ./configure -q "$$(./config.status --config)"; \
	else \
		./configure -q; \
	fi
	@touch config.mk


# ---- Flags -----------------------------------------------------------------------------------------

ALL_CPPFLAGS = -D_GNU_SOURCE -I. -include config.h $(LIB_CFLAGS) $(CPPFLAGS)
ALL_CFLAGS = $(BASE_CFLAGS) $(SANITIZE_CFLAGS) $(CFLAGS)
ALL_LDFLAGS = -Wl,--as-needed $(SANITIZE_CFLAGS) $(LDFLAGS)
ifneq ($(SANITIZE),)
SANITIZE_CFLAGS = -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -DHELENUS_DEBUG_LOCKS -O1
endif

# Objects are made anew when the flags change, not whenever config.mk is written.
flags_text := $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS)
flags_file := $(BUILD)/flags
ifneq ($(filter-out $(no_config_goals),$(goals)),)
ifneq ($(flags_text),$(file <$(flags_file)))
$(shell mkdir -p $(BUILD))
$(file >$(flags_file),$(flags_text))
endif
endif

# ---- Programs --------------------------------------------------------------------------------------

FLOORS := base cql protocol storage cluster server
lib_sources := $(filter-out server/main.c,$(wildcard $(FLOORS:%=%/*.c)))
lib_objects := $(lib_sources:%.c=$(BUILD)/obj/%.o)
library := $(BUILD)/libhelenus.a
nodetool_sources := $(wildcard tools/nodetool*.c)
stress_sources := $(wildcard tools/stress*.c tools/helenus-stress*.c)
programs := $(if $(wildcard server/main.c),$(BUILD)/helenusd) \
	$(if $(nodetool_sources),$(BUILD)/nodetool) \
	$(if $(stress_sources),$(BUILD)/helenus-stress)

compile = $(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(2) -MMD -MP -c $(1) -o $@
link = $(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(1) $(LIBS_ALL)
ifeq ($(V),)
say = @printf '  %-5s %s\n' $(1) $@;
else
say =
endif

.PHONY: all
all: $(library) $(programs)

$(BUILD)/obj/%.o: %.c $(flags_file)
	@mkdir -p $(@D)
	$(call say,CC)$(call compile,$<,$(extra_cflags))

$(BUILD)/obj/tests/unit/%.o: extra_cflags = $(CHECK_CFLAGS)

# Made from nothing each time: a member whose source is gone must not stay.
$(library): $(lib_objects)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $(lib_objects)

# The sanitizers have an allocator of their own.
$(BUILD)/helenusd: $(BUILD)/obj/server/main.o $(library)
	$(call say,LD)$(call link,$^ $(if $(SANITIZE),,$(JEMALLOC_LIBS)))

$(BUILD)/nodetool: $(nodetool_sources:%.c=$(BUILD)/obj/%.o) $(library)
	$(call say,LD)$(call link,$^)

$(BUILD)/helenus-stress: $(stress_sources:%.c=$(BUILD)/obj/%.o) $(library)
	$(call say,LD)$(call link,$^)

# ---- Tests -----------------------------------------------------------------------------------------

unit_sources := $(wildcard tests/unit/*/*_test.c)
unit_programs := $(unit_sources:tests/unit/%.c=$(BUILD)/unit/%)
unit_folders := $(sort $(dir $(unit_sources)))
unit_helpers = $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %_test.c,$(wildcard $(1)*.c))) \
	$(if $(filter tests/unit/tools/,$(1)),$(BUILD)/libtools.a) \
	$(if $(filter tests/unit/cluster/,$(1)),$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/sim/world/*.c)))
# Tests of the programs take what they need of them, never the files that hold main().
tool_objects := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out tools/nodetool.c tools/stress.c,$(wildcard tools/*.c)))
$(BUILD)/libtools.a: $(tool_objects)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $(tool_objects)

# Allocations of our own code that a test lets fail: tests/memory/allocation.h.
allocation_object := $(BUILD)/obj/tests/memory/allocation.o
allocation_names := malloc calloc realloc posix_memalign xmalloc xzalloc xcalloc xrealloc xstrdup xstrndup \
	emalloc erealloc
allocation_flags := $(allocation_names:%=-Wl,--wrap=%)

define unit_folder_rule
$$(BUILD)/$(1:tests/%=%)%_test: $$(BUILD)/obj/$(1)%_test.o $$(call unit_helpers,$(1)) $$(allocation_object) $$(library)
	@mkdir -p $$(@D)
	$$(call say,LD)$$(call link,$$(allocation_flags) $$^) $$(CHECK_LIBS)
endef
$(foreach folder,$(unit_folders),$(eval $(call unit_folder_rule,$(folder))))

.PHONY: unit-programs
unit-programs: $(unit_programs)

fuzz_sources := $(wildcard tests/fuzz/*_fuzz.c)
fuzz_names := $(fuzz_sources:tests/fuzz/%.c=%)
replay_programs := $(fuzz_names:%=$(BUILD)/replay/%)
fuzz_programs := $(fuzz_names:%=$(BUILD)/fuzz/%)

.PHONY: replay-programs fuzz-programs
replay-programs: $(replay_programs)
fuzz-programs: $(fuzz_programs)

$(BUILD)/replay/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/replay.o $(allocation_object) $(library)
	@mkdir -p $(@D)
	$(call say,LD)$(call link,$(allocation_flags) $^)

$(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(library)
	@mkdir -p $(@D)
	$(call say,LD)$(call link,-fsanitize=fuzzer $^)

area_sources := $(wildcard $(patsubst %,tests/%/*.c,sim crash cluster oracle bench interop))
area_programs := $(area_sources:tests/%.c=$(BUILD)/%)

.PHONY: area-programs
area-programs: $(area_programs)

# Simulations share the world of tests/sim/world, and so do unit tests of what needs several nodes.
sim_programs := $(filter $(BUILD)/sim/%,$(area_programs))
world_objects := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/sim/world/*.c))
$(sim_programs): $(BUILD)/%: $(BUILD)/obj/tests/%.o $(world_objects) $(library)
	@mkdir -p $(@D)
	$(call say,LD)$(call link,$^)

$(filter-out $(sim_programs),$(area_programs)): $(BUILD)/%: $(BUILD)/obj/tests/%.o $(library)
	@mkdir -p $(@D)
	$(call say,LD)$(call link,$^)

.SECONDARY:

# Everything that a test may start; the runner itself compiles nothing.
.PHONY: test-programs
test-programs: all unit-programs replay-programs area-programs

.PHONY: check check-unit check-integration check-crash check-cluster check-sim check-fuzz
check:
	@$(MAKE) -j$(JOBS) test-programs
	@$(test_environment) tests/run unit fuzz sim integration oracle crash cluster

check-unit:
	@$(MAKE) -j$(JOBS) unit-programs
	@$(test_environment) tests/run unit

check-fuzz:
	@$(MAKE) -j$(JOBS) replay-programs
	@$(test_environment) tests/run fuzz

check-integration check-crash check-cluster check-sim:
	@$(MAKE) -j$(JOBS) all area-programs
	@$(test_environment) tests/run --long $(@:check-%=%)

.PHONY: interop oracle bench bench-cluster
interop oracle bench bench-cluster:
	@$(MAKE) -j$(JOBS) all area-programs
	@$(test_environment) tests/run --long $(@:oracle=oracle-live)

# Same tests, own build folder. Leaks count as failures.
test_environment = BUILD=$(BUILD) \
	ASAN_OPTIONS=$${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=1} \
	UBSAN_OPTIONS=$${UBSAN_OPTIONS:-print_stacktrace=1} \
	TSAN_OPTIONS=$${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$(CURDIR)/tests/tsan.supp}

.PHONY: asan tsan asan-unit tsan-unit
asan:
	@$(MAKE) BUILD=build/asan SANITIZE=address,undefined check
tsan:
	@$(MAKE) BUILD=build/tsan SANITIZE=thread check
asan-unit:
	@$(MAKE) BUILD=build/asan SANITIZE=address,undefined check-unit
tsan-unit:
	@$(MAKE) BUILD=build/tsan SANITIZE=thread check-unit

.PHONY: fuzz
fuzz:
	@build-aux/install-deps clang
	@$(MAKE) -j$(JOBS) BUILD=build/libfuzzer CC="$(FUZZ_CC)" SANITIZE=fuzzer-no-link,address,undefined fuzz-programs
	@BUILD=build/libfuzzer tests/run --long fuzz-live
FUZZ_CC ?= $(if $(filter ccache,$(CC)),ccache )clang

# ---- Running and installing ------------------------------------------------------------------------

.PHONY: run
run:
	@$(MAKE) -j$(JOBS) all
	@test -x $(BUILD)/helenusd || { echo "make run: server/main.c is missing, there is no server to run" >&2; exit 1; }
	@mkdir -p data
	@echo "Connect with a CQL driver, or: cqlsh 127.0.0.1 9042 (pip install cqlsh). Ctrl-C stops the node."
	@exec $(BUILD)/helenusd -f -c etc/helenus.yaml -D data_directory=./data

exec_prefix = $(prefix)
bindir = $(exec_prefix)/bin
sbindir = $(exec_prefix)/sbin
datadir = $(prefix)/share
mandir = $(datadir)/man
# An installed server looks in /etc/helenus; only a private prefix keeps its own etc.
sysconfdir = $(if $(filter /usr /usr/local,$(prefix)),/etc,$(prefix)/etc)
systemddir = $(prefix)/lib/systemd/system
INSTALL = install

.PHONY: install
install: all
	$(INSTALL) -d $(DESTDIR)$(bindir) $(DESTDIR)$(sbindir) $(DESTDIR)$(sysconfdir)/helenus
	@test ! -e $(BUILD)/helenusd || $(INSTALL) -s -m 755 $(BUILD)/helenusd $(DESTDIR)$(sbindir)/
	@for program in nodetool helenus-stress; do \
		test ! -e $(BUILD)/$$program || \
		$(INSTALL) -s -m 755 $(BUILD)/$$program $(DESTDIR)$(bindir)/; done
	@for page in $(wildcard man/*.[1-8]); do section=$${page##*.}; \
		$(INSTALL) -D -m 644 $$page $(DESTDIR)$(mandir)/man$$section/$${page##*/}; done
	@# A configuration that the operator has edited stays.
	@for file in etc/helenus.yaml etc/cassandra-rackdc.properties etc/commitlog_archiving.properties; do \
		to=$(DESTDIR)$(sysconfdir)/helenus/$${file##*/}; \
		test ! -e $$file || test -e $$to || { $(INSTALL) -m 644 $$file $$to && \
		sed -i 's|^# \(data_directory:\)|\1|' $$to; }; done
	@test ! -e etc/helenus.service || { $(INSTALL) -d $(DESTDIR)$(systemddir) && \
		sed -e 's|@sbindir@|$(sbindir)|g' -e 's|@sysconfdir@|$(sysconfdir)|g' etc/helenus.service \
		> $(DESTDIR)$(systemddir)/helenus.service; }
	@# The user that the unit names: systemd-sysusers makes it.
	$(INSTALL) -D -m 644 etc/helenus.sysusers $(DESTDIR)$(prefix)/lib/sysusers.d/helenus.conf
	@for file in $(wildcard etc/completions/*.bash); do name=$${file##*/}; \
		$(INSTALL) -D -m 644 $$file $(DESTDIR)$(datadir)/bash-completion/completions/$${name%.bash}; done
	@for file in $(wildcard etc/completions/_*); do \
		$(INSTALL) -D -m 644 $$file $(DESTDIR)$(datadir)/zsh/site-functions/$${file##*/}; done

# ---- Care ------------------------------------------------------------------------------------------

c_files = $(wildcard $(FLOORS:%=%/*.[ch]) tools/*.[ch] tests/*/*.[ch] tests/unit/*/*.[ch] tests/sim/world/*.[ch])

.PHONY: format lint lint-floors lint-shell lint-tidy lint-cppcheck deps clean distclean
format:
	@clang-format -i $(c_files)

# All of them, also where an early one has findings.
lint:
	@$(MAKE) --keep-going lint-floors lint-shell lint-cppcheck lint-tidy
lint-floors:
	@tests/lint/floors
	@tests/lint/config-keys
lint-shell:
	@tests/lint/shell
lint-cppcheck:
	@build-aux/install-deps lint
	@tests/lint/cppcheck $(wildcard $(FLOORS:%=%/*.c) tools/*.c)
lint-tidy:
	@build-aux/install-deps lint
	@tests/lint/tidy "$(ALL_CPPFLAGS) -std=gnu17" $(wildcard $(FLOORS:%=%/*.c) tools/*.c)

deps:
	@build-aux/install-deps build

clean:
	rm -rf build
distclean: clean
	rm -rf config.mk config.h config.h.in config.log config.status autom4te.cache

-include $(shell test ! -d $(BUILD)/obj || find $(BUILD)/obj -name '*.d')
