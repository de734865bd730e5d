# SPDX-License-Identifier: GPL-2.0
#
# qhca: the entry point for everything; `make help` lists the targets.
#
# Everything but `modules` and `modules_install` brings its own tools along in
# a cached build root, see scripts/README.

# `make run SHELL=1` asks for a prompt instead of the demo. SHELL is also make's own
# variable for the shell of its recipes: note the request, restore the variable.
ifeq ($(SHELL),1)
RUN_SHELL := 1
endif
override SHELL := /bin/bash

KDIR ?= /lib/modules/$(shell uname -r)/build
VM := scripts/vm
VMFLAGS ?=

.DEFAULT_GOAL := help

help:
	@echo "make run              boot a VM, load the drivers, run perftest, compare with rdma_rxe"
	@echo "make run SHELL=1      the same machine with a root prompt (also: make shell)"
	@echo "make lab N=3          machines on one switch, with a terminal each; LAB=\"--internet …\";"
	@echo "                      make lab-stop ends them"
	@echo "make tour             one WRITE and one SEND through all layers, step by step"
	@echo "make check            all tests; ends with: N passed, N failed, N skipped;"
	@echo "                      PARTS=\"pair kselftest/mw\": some of them; KSELFTESTS=\"mw ud\";"
	@echo "                      JUNIT=file.xml; \`pytest -k D-054' runs what names a statement"
	@echo "make check-quick      the engine, the device, and the core in one VM, in a minute"
	@echo "make check-full       all tests in their long form, for the night"
	@echo "make check-engine     only the tests that need no VM"
	@echo "make soak             schedules of the network simulator: COUNT=1000000 SEED=1"
	@echo "make soak-guest       connections with data, in many threads of a VM: MINUTES=10, 0: endless"
	@echo "make bench            the device against rdma_rxe, TCP and the machine's limits, with plots;"
	@echo "                      OUT=directory for the results"
	@echo "make bench-quick      its headline: rows with targets, in 3 minutes"
	@echo "make cluster N=64     adapters in a simulated network: WORKLOAD=incast RANKS=2 OUT=directory"
	@echo "                      CLUSTER=\"topology=fat-tree dcqcn=1\"; Documentation/clusters.rst"
	@echo "make lint             checkpatch, sparse, W=1, coccinelle, clang-tidy, shellcheck"
	@echo "make docs             the documentation as web pages and manual pages"
	@echo "make qemu             the device beside Debian's QEMU"
	@echo "make image            the guest: kernel, initrd, root file system"
	@echo "make modules          qhca.ko, qhca_ib.ko; KDIR=<headers> builds them here,"
	@echo "                      for that kernel (C=1, W=1 as usual)"
	@echo "make modules_install  into the running system, or INSTALL_MOD_PATH"
	@echo "make provider         the rdma-core provider"
	@echo "make selftests        the kselftests"
	@echo "make packages         Debian packages: drivers (DKMS), provider, device, server, qhca-vm"
	@echo "make oci              a container image with all of it, and a guest"
	@echo "make export-linux     series of patches for the projects that the parts are meant for;"
	@echo "                      export-qemu, export-rdma-core; OUT=directory"
	@echo "make clean            objects in this tree"
	@echo "make distclean        and the cache with everything built and downloaded"
	@echo
	@echo "VMFLAGS=… goes to scripts/vm (see scripts/vm --help); QHCA_ACCEL=kvm|tcg"

run:
ifdef RUN_SHELL
	@$(VM) shell --rxe $(VMFLAGS)
else
	@$(VM) run --rxe --no-selftests $(VMFLAGS) -- /opt/qhca/guest/demo.sh
endif

shell:
	@$(VM) shell --rxe $(VMFLAGS)

lab:
	@$(VM) lab -n $(or $(N),2) $(LAB) $(VMFLAGS)

lab-stop:
	@$(VM) lab-stop

tour:
	@scripts/docs/tour.py

# Debian's name of pytest, whatever else is there. The words of PARTS and KSELFTESTS are marks.
PYTEST = pytest-3
CHECK = scripts/build/host-deps.sh --tests && VMFLAGS="$(VMFLAGS)" COUNT=$(COUNT) SEED=$(SEED) \
	$(PYTEST) -q $(if $(JUNIT),--junitxml="$(JUNIT)")
WORDS = $(strip $(PARTS) $(KSELFTESTS:%=kselftest/%))
SPACE = $(subst ,, )
MARKS = $(or $(subst $(SPACE), or ,$(WORDS)),check)

check:
	@$(CHECK) -m "$(MARKS)"

check-full:
	@$(CHECK) -m full --full

check-quick check-engine: check-%:
	@$(CHECK) -m $*

soak:
	@$(CHECK) -m soak

soak-guest:
	@MINUTES=$(or $(MINUTES),10) $(CHECK) -m soak-guest

BENCH = VMFLAGS="$(VMFLAGS)" scripts/bench/bench.py $(if $(OUT),--out "$(OUT)")

bench:
	@$(BENCH)

bench-quick:
	@$(BENCH) --quick

cluster:
	@scripts/cluster/cluster.py $(if $(N),--hosts $(N)) $(if $(WORKLOAD),--workload $(WORKLOAD)) \
		$(if $(RANKS),--ranks $(RANKS)) $(if $(OUT),--out "$(OUT)") $(CLUSTER)

lint:
	@scripts/lint.sh

docs:
	@scripts/docs/build.sh

qemu:
	@scripts/build/beside.sh

image:
	@scripts/build/image.sh

provider:
	@scripts/build/provider.sh

selftests:
	@scripts/build/selftests.sh

packages:
	@scripts/release/build-packages.sh

oci:
	@scripts/release/build-oci.sh

export-linux export-qemu export-rdma-core:
	@scripts/release/export.sh $(if $(OUT),--out "$(OUT)") $(@:export-%=%)

# With kernel headers (given, or the running kernel's): plain kbuild, in place,
# on any machine. Without: for the guest's kernel, in the build root.
modules:
ifneq ($(wildcard $(KDIR)/Makefile),)
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules
else ifneq ($(filter command environment,$(origin KDIR)),)
	@echo "no kernel headers in KDIR=$(KDIR); those of the running kernel are in the" \
		"package linux-headers-$(shell uname -r)" >&2; false
else
	@echo "no headers of this kernel (package linux-headers-$(shell uname -r)):" \
		"building for the guest's, in the build root" >&2
	@scripts/build/modules.sh
endif

modules_install:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

# By hand, because kbuild's own clean needs kernel headers.
clean:
	@find drivers -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name 'modules.order' -o -name 'Module.symvers' | xargs -r rm -f
	@rm -f .*.cmd modules.order Module.symvers *.o
	@[ ! -e selftests/Makefile ] || $(MAKE) -s -C selftests clean
	@[ ! -e qemu-device/tests/Makefile ] || $(MAKE) -s -C qemu-device/tests clean

clean-buildroot distclean:
	@scripts/build/clean-cache.sh $@

.PHONY: help run shell lab lab-stop tour check check-quick check-full check-engine soak \
	soak-guest bench bench-quick cluster lint docs qemu image provider selftests packages oci \
	export-linux export-qemu export-rdma-core modules modules_install clean clean-buildroot \
	distclean
