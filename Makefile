# make build    puts urnic into bin/
# make liburnic puts the drop-in library into lib/ (C compiler and rdma-core's headers wanted)
# make demo     runs the main job: two RNICs exercise every verb over loopback
# make test     passes the tests
GO      ?= go
TOOL    := $(GO) tool -modfile=internal/tools/go.mod
LAYERS  := mpa ddp rdmap stag pd rnic
FUZZTIME ?= 30s
BENCHTIME ?= 300ms
PEERSFLAGS ?=
PREFIX  ?= /usr/local
CC      ?= cc
CFLAGS  ?= -O2 -g
MUTANTSFLAGS ?=
MUTATIONFLAGS ?=
PKG ?= pd stag ddp rdmap mpa
LINTTAGS := interop,dropin
TIMES ?= 20
DROPIN ?= ./cmd/liburnic ./internal/dropintest

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
liburnic: build lib/liburnic.so lib/replace/libmlx5.so.1 lib/replace/libefa.so.1 ## build the drop-in library into lib/
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

lib/replace/lib%.so.1: cmd/liburnic/shim/stubs/%.c cmd/liburnic/shim/stubs/%.map Makefile | c-toolchain
	$(CC) $(SHIM_CFLAGS) -fvisibility=default $(CFLAGS) $(SHIM_LDFLAGS) $(LDFLAGS) -Wl,-soname,$(@F) \
		-Wl,--version-script,cmd/liburnic/shim/stubs/$*.map -o $@.$$$$ $< && mv $@.$$$$ $@

.PHONY: install
install: ## install urnic, and the drop-in library if it is built, below PREFIX (/usr/local)
	install -D bin/urnic $(DESTDIR)$(PREFIX)/bin/urnic
	test ! -e lib/liburnic.so || { set -e; dir=$(DESTDIR)$(PREFIX)/lib/urnic; install -d $$dir $$dir/replace; \
		install lib/liburnic.so lib/liburnic-engine.so $$dir; install lib/replace/libmlx5.so.1 lib/replace/libefa.so.1 $$dir/replace; \
		cp -P --remove-destination lib/replace/libibverbs.so.1 lib/replace/librdmacm.so.1 $$dir/replace; }

.PHONY: demo
demo: build ## two RNICs in one process exercise every verb and print the ladder
	bin/urnic demo

.PHONY: test
test: ## run the tests
	$(GO) test $(TESTFLAGS) ./...
	$(GO) -C internal/tools test $(TESTFLAGS) ./...

.PHONY: race
race: ## run the tests under the race detector
	$(GO) test -race $(TESTFLAGS) ./rnic ./... # the longest first: the others run beside it
	$(GO) -C internal/tools test -race $(TESTFLAGS) ./...

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (30s)
	internal/tools/fuzz $(FUZZTIME)

.PHONY: lint
lint: ## format, vet, lint, and check go.mod and what is generated
	@diff=$$($(TOOL) golangci-lint fmt --diff) && test -z "$$diff" || { echo "$$diff"; echo "not formatted: golangci-lint fmt"; exit 1; }
	$(GO) vet -tags $(LINTTAGS) ./...
	$(GO) -C internal/tools vet ./...
	$(TOOL) golangci-lint run --build-tags $(LINTTAGS)
	$(GO) -C internal/tools tool golangci-lint run
	$(GO) fix -tags $(LINTTAGS) -diff ./...
	$(GO) -C internal/tools fix -diff ./...
	$(GO) mod tidy -diff
	$(GO) -C internal/tools mod tidy -diff
	$(GO) -C internal/crc32c/gen mod tidy -diff
	$(GO) -C internal/crc32c/gen vet
	$(GO) -C internal/crc32c/gen run . -check

.PHONY: vuln
vuln: ## look for known vulnerabilities
	$(TOOL) govulncheck ./...

# Nobody runs what cross builds: optimising it would take a third of the time.
UNOPTIMISED := -gcflags='all=-N -l'

.PHONY: cross
cross: ## build and vet for the other systems
	@for t in linux/arm64 linux/386 darwin/arm64 darwin/amd64 windows/amd64; do \
		echo "$$t"; export GOOS=$${t%/*} GOARCH=$${t#*/}; \
		$(GO) build $(UNOPTIMISED) ./... && $(GO) vet $(UNOPTIMISED) ./... || exit 1; \
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

.PHONY: conform
conform: ## run the conformance suite against our own stack, TIMES times (20)
	$(GO) test -count=1 -timeout 30m -run 'TestOurStackPasses$$' ./conformance/cases -args -times $(TIMES)

.PHONY: mutants
mutants: ## build urnic with one fault at a time, and have urnic conform find each (MUTANTSFLAGS)
	$(GO) run ./conformance/mutants/run $(MUTANTSFLAGS)

.PHONY: rds-mutants
rds-mutants: ## build the machine of RDS with one fault at a time, and have its tests find each (RDSMUTANTSFLAGS)
	$(GO) run ./ulp/rds/machine/mutants $(RDSMUTANTSFLAGS)

.PHONY: mutation
mutation: ## change PKG (pd stag ddp rdmap mpa) in one place at a time, and have its tests notice (MUTATIONFLAGS)
	$(GO) -C internal/tools build -o ../../bin/mutation ./mutation
	@status=0; for p in $(PKG); do bin/mutation $(MUTATIONFLAGS) ./$$p || status=1; done; exit $$status

.PHONY: prove
prove: ## run what takes long, and record for which sources it has passed (PROOFS; see internal/tools/prove)
	$(GO) -C internal/tools build -o ../../bin/prove ./prove
	bin/prove run $(PROOFS)

.PHONY: interop
interop: liburnic ## run against Linux siw in a guest (QEMU; see internal/interop/lab)
	internal/interop/lab/build
	$(GO) test -count=1 -timeout 30m -parallel 6 -tags interop,dropin $(TESTFLAGS) ./internal/interop

.PHONY: dropin
dropin: liburnic ## run programs for libibverbs and librdmacm, Debian's and our own in C, on the drop-in library
	$(GO) vet -tags dropin ./cmd/liburnic ./internal/dropintest
	$(GO) test -count=1 -timeout 40m -tags dropin $(TESTFLAGS) $(DROPIN)
	$(GO) test -run '^$$' -bench StartUp -benchtime 20x -tags dropin ./cmd/liburnic
