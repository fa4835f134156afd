# make build    puts urnic into bin/
# make liburnic puts the drop-in library into lib/ (C compiler and rdma-core's headers wanted)
# make demo     runs the main job: two RNICs exercise every verb over loopback
# make test     passes the tests
# make verify   runs all that takes longer, and records it in .ci/verified
GO      ?= go
TOOL    := $(GO) tool -modfile=internal/tools/go.mod
LAYERS  := mpa ddp rdmap stag pd rnic
FUZZTIME ?= 30s
BENCHTIME ?= 300ms
PEERSFLAGS ?=
RXFLAGS ?=
PREFIX  ?= /usr/local
CC      ?= cc
CFLAGS  ?= -O2 -g
MUTANTSFLAGS ?=
MUTATIONFLAGS ?=
PKG ?= pd stag ddp rdmap mpa
LINTTAGS := interop,dropin,lossypath
TIMES ?= 20
DROPIN ?= ./cmd/liburnic ./internal/test/dropintest

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build urnic into bin/
	@mkdir -p bin
	$(GO) build -o bin/urnic ./cmd/urnic

SHIM_CFLAGS := -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -Wall -Wextra -Werror
SHIM_LDFLAGS := -shared -Wl,-z,defs -Wl,-z,now -Wl,-Bsymbolic-functions
# dlclose leaves liburnic.so where it is: threads, signals and forks come back to it. The stubs hold nothing.
KEEP_LOADED := -Wl,-z,nodelete

.PHONY: liburnic
liburnic: build lib/liburnic.so lib/liburnic-sysfs.so lib/replace/libmlx5.so.1 lib/replace/libefa.so.1 ## build the drop-in library into lib/
	GO='$(GO)' cmd/liburnic/build lib/liburnic-engine.so
	@ln -sf ../liburnic.so lib/replace/libibverbs.so.1
	@ln -sf ../liburnic.so lib/replace/librdmacm.so.1

.PHONY: c-toolchain
c-toolchain:
	@mkdir -p lib/replace
	@command -v $(firstword $(CC)) >/dev/null || \
		{ echo "no C compiler ($(CC)): on Debian, apt-get install gcc libc6-dev libibverbs-dev librdmacm-dev"; exit 1; }
	@printf '#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\n' | $(CC) -E -x c - >/dev/null || \
		{ echo "no headers of rdma-core or the C library: on Debian, apt-get install libc6-dev libibverbs-dev librdmacm-dev"; exit 1; }

lib/liburnic.so: $(wildcard cmd/liburnic/shim/*.c cmd/liburnic/shim/*.h) cmd/liburnic/engine.h cmd/liburnic/shim/liburnic.map Makefile | c-toolchain
	$(CC) $(SHIM_CFLAGS) $(CFLAGS) $(SHIM_LDFLAGS) $(KEEP_LOADED) $(LDFLAGS) -Wl,-soname,liburnic.so \
		-Wl,--version-script,cmd/liburnic/shim/liburnic.map -o $@.$$$$ $(filter %.c,$^) -ldl -pthread && mv $@.$$$$ $@ # the old one may be in use

lib/liburnic-sysfs.so: $(wildcard cmd/liburnic/shim/view*.c) cmd/liburnic/shim/view.h Makefile | c-toolchain
	$(CC) $(SHIM_CFLAGS) $(CFLAGS) $(SHIM_LDFLAGS) $(KEEP_LOADED) $(LDFLAGS) -Wl,-soname,$(@F) \
		-o $@.$$$$ $(filter %.c,$^) -ldl && mv $@.$$$$ $@

lib/replace/lib%.so.1: cmd/liburnic/shim/stubs/%.c cmd/liburnic/shim/stubs/%.map Makefile | c-toolchain
	$(CC) $(SHIM_CFLAGS) -fvisibility=default $(CFLAGS) $(SHIM_LDFLAGS) $(LDFLAGS) -Wl,-soname,$(@F) \
		-Wl,--version-script,cmd/liburnic/shim/stubs/$*.map -o $@.$$$$ $< && mv $@.$$$$ $@

.PHONY: install
install: ## install urnic, and the drop-in library if it is built, below PREFIX (/usr/local)
	install -D bin/urnic $(DESTDIR)$(PREFIX)/bin/urnic
	test ! -e lib/liburnic.so || { set -e; dir=$(DESTDIR)$(PREFIX)/lib/urnic; install -d $$dir $$dir/replace; \
		install lib/liburnic.so lib/liburnic-engine.so lib/liburnic-sysfs.so $$dir; install lib/replace/libmlx5.so.1 lib/replace/libefa.so.1 $$dir/replace; \
		cp -P --remove-destination lib/replace/libibverbs.so.1 lib/replace/librdmacm.so.1 $$dir/replace; }

.PHONY: dist
dist: ## make the release in artifacts/dist, for glibc 2.31 and later (as root; ARCHS; HERE=1: for the glibc of this machine)
	URNIC_DIST_HERE=$(HERE) internal/dist/build $(ARCHS)

.PHONY: dist-test
dist-test: ## try the release of artifacts/dist in bare Debian systems, as arm64, and by lintian (as root; SUITES: bookworm bullseye trixie arm64 lintian)
	internal/dist/test $(SUITES)

.PHONY: demo
demo: build ## two RNICs in one process exercise every verb and print the ladder
	bin/urnic demo

# Testrun runs tests, runs those that fail again, and says what came of it: see internal/tools/testrun.
.PHONY: testrun
testrun:
	@$(GO) -C internal/tools build -o ../../bin/ ./testrun gotest.tools/gotestsum

# Vet is a part of lint. A package has 30 minutes: its tests that wait for what does not come say so earlier.
GOTEST := -vet=off -p 2 -timeout 30m

.PHONY: test
test: testrun ## run the tests, but those that .ci/later leaves to make verify
	@status=0; bin/testrun -name test -later test ./... -- $(GOTEST) -short $(TESTFLAGS) || status=1; \
	bin/testrun -C internal/tools -name tools -later test ./... -- $(GOTEST) -short $(TESTFLAGS) || status=1; exit $$status

# What has goroutines of its own. make race-all tests everything.
RACED := rnic rnic/internal/... rnic/rnictest rnic/rnicinfo rnic/rnictimeline mpa ddp rdmap stag \
	internal/door/... internal/dropin internal/dropin/datagram/carrier internal/dropin/rendezvous internal/host/... \
	internal/program/rping internal/program/top \
	internal/ring internal/test/leakcheck internal/test/simnet internal/wake \
	ulp/nfs ulp/nfs/nfsd ulp/nfs/vfs/dirfs ulp/nfs/vfs/memfs ulp/oncrpc/... ulp/rpcrdma \
	ulp/rdp ulp/rdp/rdpinfo ulp/rdp/rdpllp ulp/rdp/rdpstream ulp/rds ulp/rds/rdsinfo ulp/rds/rdsstress \
	ulp/rx ulp/rx/internal/... ulp/rx/rpc ulp/rx/rxdebug ulp/rx/rxkad ulp/rx/rxperf/... ulp/rx/rxrdma ulp/rx/rxrelay ulp/rx/rxudp \
	conformance conformance/rdpconn conformance/service/... conformance/wire

# The race detector holds up each process that ends for a second, lest it miss what goroutines do meanwhile. Tests and
# programs end theirs, which is tested.
race race-all: export GORACE ?= atexit_sleep_ms=10

.PHONY: race
race: testrun ## run the tests of what has goroutines under the race detector, shortened
	bin/testrun -name race -later race $(addprefix ./,$(RACED)) -- $(GOTEST) -race -short $(TESTFLAGS)

.PHONY: test-all
test-all: testrun ## run all tests, in another order each time
	@status=0; bin/testrun -name test-all ./... -- $(GOTEST) -count=1 -shuffle=on $(TESTFLAGS) || status=1; \
	bin/testrun -C internal/tools -name tools-all ./... -- $(GOTEST) -count=1 -shuffle=on $(TESTFLAGS) || status=1; exit $$status

.PHONY: race-all
race-all: testrun ## run all tests under the race detector, in another order each time
	@status=0; bin/testrun -name race-all -later race-all ./... -- $(GOTEST) -race -timeout 60m -count=1 -shuffle=on $(TESTFLAGS) || status=1; \
	bin/testrun -C internal/tools -name tools-race ./benchpeers ./mutation -- $(GOTEST) -race -count=1 $(TESTFLAGS) || status=1; exit $$status

.PHONY: stress
stress: ## run one test in many processes at once until it fails, or N times (TEST, N, RACE=-race, TAGS)
	internal/tools/stress '$(TEST)' '$(N)' $(RACE) $(if $(TAGS),-tags '$(TAGS)')

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (30s)
	internal/tools/fuzz $(FUZZTIME)

.PHONY: linter
linter:
	@$(GO) -C internal/tools build -ldflags=-w -o ../../bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: linter ## format, vet and lint, and check what is generated
	@bad=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && test -z "$$bad" || { echo "$$bad"; echo "not formatted: bin/golangci-lint fmt"; exit 1; }
	bin/golangci-lint run --build-tags $(LINTTAGS)
	cd internal/tools && ../../bin/golangci-lint run
	$(GO) fix -tags $(LINTTAGS) -diff ./...
	$(GO) -C internal/tools fix -diff ./...
	$(GO) -C internal/host/crc32c/gen vet
	$(GO) -C internal/host/crc32c/gen run . -check

.PHONY: tidy
tidy: ## check go.mod, for which modules are downloaded that only tests of others need
	$(GO) mod tidy -diff
	$(GO) -C internal/tools mod tidy -diff
	$(GO) -C internal/host/crc32c/gen mod tidy -diff

.PHONY: vuln
vuln: ## look for known vulnerabilities
	$(TOOL) govulncheck ./...

# Nobody runs what cross builds, so it is not optimised.
UNOPTIMISED := -gcflags='all=-N -l'

.PHONY: cross
cross: ## vet for the other systems, and build what only a compiler or linker checks
	$(GO) -C internal/tools build -o ../../bin/vetfor ./vetfor
	@for t in linux/arm64 linux/386 darwin/arm64 darwin/amd64 windows/amd64; do \
		echo "$$t"; export GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0; \
		bin/vetfor ./... && asm=$$($(GO) list -f '{{if .SFiles}}{{.ImportPath}}{{end}}' ./...) || exit 1; \
		[ -z "$$asm" ] || $(GO) build $(UNOPTIMISED) $$asm || exit 1; \
	done
	@for t in darwin/arm64 windows/amd64; do \
		echo "$$t, the program"; GOOS=$${t%/*} GOARCH=$${t#*/} CGO_ENABLED=0 $(GO) build $(UNOPTIMISED) -ldflags=-w -o artifacts/cross/ ./cmd/urnic || exit 1; \
	done

.PHONY: cover
cover: ## check that each protocol package is covered to 85 %
	internal/tools/cover 85 $(LAYERS)

# The packages that have benchmarks: the tests of the others need not be linked.
BENCHED = $(shell grep -rlE '^func Benchmark' --include='*_test.go' --exclude-dir=tools . | xargs -n 1 dirname | sort -u | \
	xargs $(GO) list -e -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}')

.PHONY: bench
bench: ## run each benchmark for BENCHTIME (300ms): two minutes in all
	$(GO) test -vet=off -run '^$$' -bench . -benchtime $(BENCHTIME) -benchmem $(BENCHED)

.PHONY: bench-peers
bench-peers: liburnic ## measure urnic beside libfabric, UCX and iperf3; write docs/performance.md (PEERSFLAGS)
	$(GO) -C internal/tools build -o ../../bin/benchpeers ./benchpeers
	bin/benchpeers $(PEERSFLAGS)

.PHONY: bench-rx
bench-rx: build ## measure Rx beside OpenAFS's library, and print the table of docs/rx.md (RXFLAGS)
	internal/test/interop/lab/build
	$(GO) -C internal/tools build -o ../../bin/benchrx ./benchrx
	bin/benchrx -rxr "$$(internal/test/interop/lab/build --paths | sed -n 3p)/rxr" $(RXFLAGS)

.PHONY: conform
conform: ## run the conformance suite against our own stack, TIMES times (20)
	$(GO) test -count=1 -timeout 30m -run 'TestOurStackPasses$$' ./conformance/cases -args -times $(TIMES)

.PHONY: mutants
mutants: ## build urnic with one fault at a time, and have urnic conform find each (MUTANTSFLAGS)
	$(GO) run ./conformance/mutants/run $(MUTANTSFLAGS)

.PHONY: life-mutants
life-mutants: ## build the life of a queue pair with one fault at a time, and have its tests find each (LIFEMUTANTSFLAGS)
	$(GO) run ./rnic/internal/life/mutants $(LIFEMUTANTSFLAGS)

.PHONY: rds-mutants
rds-mutants: ## build the machine of RDS with one fault at a time, and have its tests find each (RDSMUTANTSFLAGS)
	$(GO) run ./ulp/rds/machine/mutants $(RDSMUTANTSFLAGS)

.PHONY: rdp-mutants
rdp-mutants: ## build the machine of RDP with one fault at a time, and have its tests find each (RDPMUTANTSFLAGS)
	$(GO) run ./ulp/rdp/machine/mutants $(RDPMUTANTSFLAGS)

.PHONY: rx-mutants
rx-mutants: ## build the machine of Rx with one fault at a time, and have its tests find each (RXMUTANTSFLAGS)
	$(GO) run ./ulp/rx/machine/mutants $(RXMUTANTSFLAGS)

.PHONY: mutation
mutation: ## change PKG (pd stag ddp rdmap mpa) in one place at a time, and have its tests notice (MUTATIONFLAGS)
	$(GO) -C internal/tools build -o ../../bin/mutation ./mutation
	@status=0; for p in $(PKG); do bin/mutation $(MUTATIONFLAGS) ./$$p || status=1; done; exit $$status

.PHONY: prove
prove: ## run what takes long, and record for which sources it has passed (PROOFS; see internal/tools/prove)
	$(GO) -C internal/tools build -o ../../bin/prove ./prove
	bin/prove run $(PROOFS)

.PHONY: verify
verify: ## run what the landing gate leaves out, and record it in .ci/verified (STEPS)
	.ci/verify $(STEPS)

.PHONY: interop
interop: liburnic testrun ## run against Linux siw in a guest (QEMU; see internal/test/interop/lab; RUN)
	internal/test/interop/lab/build
	bin/testrun -name $(or $(NAME),interop) ./internal/test/interop -- -count=1 -timeout 60m -parallel 6 -tags interop,dropin $(if $(RUN),-run '$(RUN)') $(TESTFLAGS)

.PHONY: programs
programs: liburnic testrun ## run programs of other packages (fio, UCX, MPI, QEMU ...) on the drop-in library
	bin/testrun -name programs ./internal/test/dropintest -- -short -count=1 -timeout 40m -tags dropin -run '^TestPackage' $(TESTFLAGS)

.PHONY: packages
packages: liburnic ## the same, with more processes and more tests of each
	$(GO) test -count=1 -timeout 40m -tags dropin -run '^TestPackage' $(TESTFLAGS) ./internal/test/dropintest

.PHONY: bench-packages
bench-packages: liburnic ## measure UCX and Open MPI on the drop-in library beside the same over TCP
	$(GO) test -count=1 -timeout 40m -tags dropin,measure -run '^TestBesideTCP$$' -v ./internal/test/dropintest

.PHONY: dropin
dropin: liburnic testrun ## run programs for libibverbs and librdmacm, Debian's and our own in C, on the drop-in library
	bin/testrun -name dropin $(DROPIN) -- -count=1 -timeout 60m -tags dropin -skip '^TestPackage' $(TESTFLAGS)
	$(GO) test -run '^$$' -bench StartUp -benchtime 20x -tags dropin ./cmd/liburnic
