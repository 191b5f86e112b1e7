# make test    minutes: every package without the race detector and without its long tests
# make test-all    everything that must pass before a merge, as .ci/run runs it
# make bench   Stone beside its peers and the floors, CPU time
# make bench-against REF=COMMIT   fails if a row of Stone costs 15 % more than at the commit
# make test-temporal   x/temporal with a real server; its first build takes 12 minutes of CPU time
# make test-faults   40 rounds of each kind of fault, with a table; an hour at most
# make gallery   a picture of each page at two widths, light and dark, in /tmp/stone-gallery
# make matrix  the table of clients of others in docs/reference/clients.md
# make lint    gofmt, go vet, staticcheck
# make vuln    known vulnerabilities that the code reaches; asks vuln.go.dev, or $GOVULNDB
# make dist    archives of the command for all platforms in dist/, with checksums and lists of their modules
# make cross   vets everything for macOS and Windows, tests too
# make reproducible   builds twice, from different folders and caches, and compares the bytes

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0

# Everything that decides about the bytes of a release: the toolchain, no C compiler, no
# paths of the machine.
TOOLCHAIN = go1.26.8
BUILD = GOTOOLCHAIN=$(TOOLCHAIN) GOFLAGS= GOAMD64= GOARM64= GOEXPERIMENT= CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w'

.PHONY: modules test test-all test-faults test-temporal bench bench-against matrix gallery lint cross peers vuln dist reproducible

# -w: these binaries are not debugged. Under the race detector a process sleeps for a second before it
# exits, which tests that run themselves again and again pay for each time.
FLAGS = -timeout=25m
# The programs that tests build in copies of this module are built so too: everything is compiled once.
export GOFLAGS += -trimpath -ldflags=-w
export GORACE = atexit_sleep_ms=10

test: modules
	$(GO) test -short $(FLAGS) ./...
	@echo "left to make test-all: the race detector, the linter, the nested modules, and the long tests of" \
		$$(git grep -lE 'need\.Time\(|testing\.Short\(\)|^\[short\]' -- '*_test.go' '*.txtar' | xargs -n1 dirname | sort -u)

# Tests build modules of users without a proxy. Such a build looks into a module that the build of this one does not need.
modules:
	$(GO) mod download github.com/dlclark/regexp2

# These tests watch programs that they start, and what works inside those is tested with the detector
# elsewhere. Under the detector ./cli takes 12 minutes of CPU time, ./sandbox 3 in place of 1.3, and solvers of
# ./x/solve/sat cannot be stopped. The last four are functions without goroutines, which take three times as long under it.
PROGRAMS = ./cli ./cli/internal/load ./cli/internal/skill ./examples/... ./internal/dist ./internal/docs ./internal/test/hostile ./internal/test/killtest ./internal/layers ./sandbox ./serve/internal/page ./x/solve/sat ./internal/structured ./schema ./x/cel/internal/expr ./x/retrieve/pdf

# SQLite, translated from C, has 230,000 lines and its own locks. With the detector in it, tests over it take
# one and a half times the CPU time.
RACE = -race -gcflags=modernc.org/sqlite/lib=-race=false

# Tests wait for processes, leases and disks: with half as many packages again as CPUs, another one works meanwhile.
PARALLEL = -p=$$(( $$(getconf _NPROCESSORS_ONLN) * 3 / 2 ))

# Tests append what clients of others have done to this file.
MATRIX := $(shell mktemp -u)

# Lint vets everything, so that vetting is left out.
test-all: export STONE_MATRIX = $(MATRIX)
test-all: modules peers lint
	$(GO) test -vet=off $(PARALLEL) $(FLAGS) $(PROGRAMS)
	programs=$$($(GO) list $(PROGRAMS)) && all=$$($(GO) list ./...) && \
	$(GO) test -vet=off $(PARALLEL) $(RACE) $(FLAGS) $$(echo "$$all" | grep -vxF "$$programs")
	$(GO) test -vet=off $(FLAGS) -run=TestLargest ./serve # the race detector needs memory of its own
	cd internal/test/powerloss && $(GO) vet ./... && $(GO) test ./...
	cd x/otel && $(GO) vet ./... && $(GO) test ./...
	cd internal/test/collectortest && $(GO) vet ./... && $(GO) test ./...
	cd x/temporal && $(GO) vet ./... && $(GO) test ./...
	cd x/a2a && $(GO) vet ./... && $(GO) test ./...
	cd internal/bench && $(GO) test -vet=off -tags alone ./... # without the peers, which take minutes to build
	$(GO) run ./internal/test/matrix $(MATRIX) docs/reference/clients.md

# The table of docs/reference/clients.md, from the tests that run the clients.
gallery:
	$(GO) test ./serve/internal/page -run TestBrowser -count=1 -args -gallery /tmp/stone-gallery

matrix: export STONE_MATRIX = $(MATRIX)
matrix:
	$(GO) test -count=1 -vet=off $(FLAGS) $$(git grep -l 'peer\.' -- '*_test.go' ':!x/a2a' ':!internal/bench' | xargs -n1 dirname | sort -u | sed 's|^|./|')
	cd x/a2a && $(GO) test -count=1 ./...
	$(GO) run ./internal/test/matrix -update $(MATRIX) docs/reference/clients.md

test-temporal:
	cd x/temporal/servertest && $(GO) vet ./... && $(GO) test -timeout=30m -v ./...

test-faults:
	STONE_FAULTS=100 $(GO) test -count=1 -timeout=60m -v -parallel=8 -run='TestFaults|TestOutages' ./internal/test/killtest

# Clients and servers of other projects, in an ignored folder. Without npm or a
# registry the tests that need them skip with a line.
peers:
	@if command -v npm >/dev/null; then \
		cd testdata/peers && npm ci --no-audit --no-fund --loglevel=error || echo "peers: npm ci failed; tests against npm peers skip"; \
	else echo "peers: no npm; tests against npm peers skip"; fi

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt would change:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	@$(GO) run $(STATICCHECK) ./...

vuln:
	$(GO) run $(GOVULNCHECK) ./...
	cd x/otel && $(GO) run $(GOVULNCHECK) ./...
	cd x/temporal && $(GO) run $(GOVULNCHECK) ./...
	cd x/a2a && $(GO) run $(GOVULNCHECK) ./...

TARGETS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
dist:
	rm -rf dist
	for target in $(TARGETS); do \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(BUILD) -o dist/bin/$$target/stone ./cmd/stone || exit 1; \
	done
	$(GO) run ./internal/dist dist $(TARGETS:%=dist/bin/%/stone)

# Vetting a package compiles its tests.
cross:
	GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

# The second build has an empty cache: with that of the first only linking would be compared.
PROGRAM = ./cmd/stone
reproducible:
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/first" "$$dir/the second" && \
	git ls-files -z | tar -c --null -T - -f "$$dir/tree" && tar -x -f "$$dir/tree" -C "$$dir/first" && tar -x -f "$$dir/tree" -C "$$dir/the second" && \
	(cd "$$dir/first" && $(BUILD) -buildvcs=false -o ../a $(PROGRAM)) && \
	(cd "$$dir/the second" && GOCACHE="$$dir/cache" $(BUILD) -buildvcs=false -o ../b $(PROGRAM)) && \
	cmp "$$dir/a" "$$dir/b" && echo "reproducible: two builds of $(PROGRAM) are equal"

bench bench-against:
	$(MAKE) -C internal/bench $@
