# dsim. Targets: all (default) deps check asan ubsan tsan lint bench figures demo clean
#
#   CC=gcc             another compiler (default: clang)
#   BUILD=DIR          another folder for objects; the program is then DIR/dsim, not ./dsim
#   MUJOCO_DIR=DIR     another MuJoCo release (DIR/include, DIR/lib) instead of Debian's libmujoco-dev
#   WERROR=1           warnings are errors (as in continuous integration)
#   V=1                show the commands
#   TESTS="a b"        only tests/test_a.c and tests/test_b.c

BUILD ?= build

# ---- Debian packages -----------------------------------------------------------------------------
PACKAGES := libomp-dev libyaml-dev libcjson-dev zlib1g-dev libopenblas-dev libsleef-dev \
            librandom123-dev libcmocka-dev gnuplot-nox
ifeq ($(origin CC),default)
  PACKAGES += clang
endif
ifeq ($(MUJOCO_DIR),)
  PACKAGES += libmujoco-dev
endif
GOALS := $(or $(MAKECMDGOALS),all)
ifneq ($(filter lint,$(GOALS)),)
  PACKAGES += clang-format
endif
ifneq ($(filter check tests,$(GOALS)),)
  PACKAGES += libsundials-dev
endif
ifneq ($(filter asan ubsan tsan,$(GOALS)),)
  PACKAGES += libclang-rt-14-dev
endif
HAVE_DPKG := $(shell command -v dpkg-query)
MISSING := $(if $(HAVE_DPKG),$(filter-out $(shell dpkg-query -W \
             -f='$${db:Status-Status}/$${Package}\n' $(PACKAGES) 2>/dev/null | sed -n 's,^installed/,,p'), \
             $(PACKAGES)))
INSTALL = $(if $(filter 0,$(shell id -u)),,sudo )sh -c 'apt-get update -q && \
          DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $(MISSING)'

ifneq ($(filter-out clean deps,$(GOALS)),)
ifneq ($(MISSING),)
# An included file that does not exist is made first, and make starts again: everything below then
# sees the machine with the packages on it. The file is named after them, so each is tried once.
empty :=
TRIED := $(BUILD)/packages/$(subst $(empty) $(empty),+,$(strip $(MISSING))).mk
include $(TRIED)
$(TRIED):
	@mkdir -p $(@D)
	@echo "installing missing packages: $(strip $(MISSING))"
	@$(INSTALL) || echo "could not install them; trying to build without"
	@touch $@
endif
endif

# ---- compiler and flags --------------------------------------------------------------------------
ifeq ($(origin CC),default)
  CC := $(if $(shell command -v clang),clang,gcc)
endif
ARCH := $(shell uname -m)

WARN := -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings \
        -Wno-psabi $(if $(WERROR),-Werror)
ifneq ($(findstring gcc,$(CC)),)
  # messages are cut on purpose; the lane code has hints for clang's unroller
  WARN += -Wno-format-truncation -Wno-unknown-pragmas
endif
OPT ?= -O3
# Contraction (fusing a*b+c) is off so that every instruction set gives the same bits.
FLAGS := -std=gnu17 $(OPT) -g -ffp-contract=off -fno-math-errno -fopenmp $(WARN)
ifneq ($(SANITIZE),)
  FLAGS += -fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer
endif
# Checks written inline blow the lane code up until it compiles for minutes: address checks become
# calls there, and pointer arithmetic is left to the bounds checks.
ifeq ($(SANITIZE),address)
  LANE_SANITIZE := $(if $(findstring gcc,$(CC)),--param ,-mllvm -)asan-instrumentation-with-call-threshold=0
else ifeq ($(SANITIZE),undefined)
  LANE_SANITIZE := -fno-sanitize=pointer-overflow
endif
CPPFLAGS := -D_GNU_SOURCE -Isrc $(if $(MUJOCO_DIR),-isystem $(MUJOCO_DIR)/include)
, := ,
LDFLAGS := $(if $(MUJOCO_DIR),-L$(MUJOCO_DIR)/lib -Wl$(,)-rpath$(,)$(MUJOCO_DIR)/lib)
LDLIBS := -lmujoco -lyaml -lcjson -lz -lopenblas -lsleef -lm
ifeq ($(ARCH),x86_64)
  BASELINE := -march=x86-64-v2
  LANES := v2 v3 v4 w1
else
  BASELINE :=
  LANES := arm w1
endif
# every src/*/lanes.c is compiled once for each of these; the program picks one when it starts
LANE_v2  := -DLANE_ISA=v2 -march=x86-64-v2
LANE_v3  := -DLANE_ISA=v3 -march=x86-64-v3
LANE_v4  := -DLANE_ISA=v4 -march=x86-64-v4 -mprefer-vector-width=512
LANE_arm := -DLANE_ISA=arm
LANE_w1  := -DLANE_ISA=w1 -DLANE_WIDTH=1 $(BASELINE)

# ---- what there is to build ----------------------------------------------------------------------
SRC := $(sort $(wildcard src/*/*.c))
LANE_SRC := $(filter %/lanes.c,$(SRC))
PLAIN_SRC := $(filter-out $(LANE_SRC),$(SRC))
PLAIN_OBJ := $(PLAIN_SRC:%.c=$(BUILD)/%.o)
LANE_OBJ := $(foreach isa,$(LANES),$(LANE_SRC:%.c=$(BUILD)/%.$(isa).o))
TESTS ?= $(patsubst tests/test_%.c,%,$(sort $(wildcard tests/test_*.c)))
TEST_BIN := $(TESTS:%=$(BUILD)/tests/test_%)
DSIM := $(if $(filter build,$(BUILD)),dsim,$(BUILD)/dsim)

# parallel, unless this make was started by another one, which then decides
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
  MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-print-directory -r
ifeq ($(V),)
  # a short line in place of the command
  Q = @echo '  $(1)' &&
endif
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all deps tests check asan ubsan tsan sanitized lint bench figures demo clean FORCE

all: $(DSIM)

deps:
	@$(if $(MISSING),$(INSTALL),echo "all packages are installed")

$(DSIM): $(BUILD)/src/main.o $(BUILD)/libdsim.a
	$(call Q,LINK $@) $(CC) $(FLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/libdsim.a: $(PLAIN_OBJ) $(LANE_OBJ)
	@rm -f $@ # and append: members of two folders may share a name
	$(call Q,AR   $@) $(AR) qcs $@ $^

$(BUILD)/src/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call Q,CC   $<) $(CC) $(FLAGS) $(BASELINE) $(CPPFLAGS) -MMD -MP -c -o $@ $<

define lane_rule
$$(BUILD)/src/%/lanes.$(1).o: src/%/lanes.c $$(BUILD)/flags
	@mkdir -p $$(@D)
	$$(call Q,CC   $$< ($(1))) $$(CC) $$(FLAGS) $$(LANE_$(1)) $$(LANE_SANITIZE) $$(CPPFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(LANES),$(eval $(call lane_rule,$(isa))))

# a test that uses SUNDIALS as an oracle says so by including it
$(BUILD)/tests/test_%: tests/test_%.c $(BUILD)/libdsim.a
	@mkdir -p $(@D)
	$(call Q,TEST $<) $(CC) $(FLAGS) $(BASELINE) $(CPPFLAGS) -MMD -MP -MF $@.d -MT $@ $(LDFLAGS) -o $@ $< \
	  $(BUILD)/libdsim.a -lcmocka $(LDLIBS) \
	  $(if $(shell grep -l '<cvodes/' $<),-lsundials_cvodes -lsundials_nvecserial)

-include $(PLAIN_OBJ:.o=.d) $(LANE_OBJ:.o=.d) $(BUILD)/src/main.d $(TEST_BIN:=.d)

# ---- facts about this build that go into every manifest ------------------------------------------
# Both files change only when their content does, so nothing is rebuilt without need.
replace_if_changed = cmp -s $@.new $@ && rm $@.new || mv $@.new $@

$(BUILD)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(FLAGS) $(BASELINE) $(CPPFLAGS) $(LDFLAGS)' > $@.new; $(replace_if_changed)

$(BUILD)/build_facts.h: FORCE
	@mkdir -p $(@D)
	@{ echo '#define DSIM_COMMIT "$(shell git rev-parse HEAD 2>/dev/null || echo unknown)"'; \
	   echo '#define DSIM_DIRTY $(shell git diff-index --quiet HEAD -- 2>/dev/null && echo 0 || echo 1)'; \
	   echo '#define DSIM_COMPILER "$(shell $(CC) --version 2>/dev/null | head -1)"'; \
	   echo '#define DSIM_FLAGS "$(strip $(FLAGS) $(BASELINE))"'; } > $@.new; $(replace_if_changed)

$(BUILD)/src/out/manifest.o: $(BUILD)/build_facts.h
$(BUILD)/src/out/manifest.o: CPPFLAGS += -include $(BUILD)/build_facts.h

# ---- tests ---------------------------------------------------------------------------------------
tests: $(TEST_BIN) $(DSIM)

# the last line printed is the summary: N passed, N failed, N skipped
check: tests
	@DSIM_BIN=$(abspath $(DSIM)) DSIM_HOME=$(CURDIR) sh tests/run.sh $(TEST_BIN)

# what parses files and what steps the simulator, under a sanitizer
SANITIZED := base spec cli rundir robot% motion% csv json checkpoint% sim% track% soft
sanitized = $(MAKE) BUILD=$(BUILD)/$(1) SANITIZE=$(2) OPT=-O1 WERROR=$(WERROR) check \
  TESTS="$(filter $(SANITIZED),$(patsubst tests/test_%.c,%,$(wildcard tests/test_*.c)))"
asan:
	+@$(call sanitized,asan,address)
ubsan:
	+@$(call sanitized,ubsan,undefined)
tsan:
	+@TSAN_OPTIONS="ignore_noninstrumented_modules=1 $$TSAN_OPTIONS" $(call sanitized,tsan,thread)

lint:
	@sh tests/lint.sh

# ---- things to run -------------------------------------------------------------------------------
bench: $(DSIM)
	./$(DSIM) bench

figures: $(DSIM)
	./$(DSIM) plot --from results/reference

demo: $(DSIM)
	./dsim train demo --overwrite
	./dsim evaluate results/demo/main/seed0
	./dsim transfer results/demo/main/seed0
	./dsim render results/demo/main/seed0
	./dsim plot --from results/demo

clean:
	rm -rf $(BUILD) dsim
