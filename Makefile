# make test    everything that must pass before a merge, as .ci/run runs it
# make bench   Stone beside its peers and the floors, CPU time
# make test-temporal   engine/temporal with a real server; its first build takes 12 minutes of CPU time
# make test-faults   500 kills, 200 stops and 20 restarts of the server, with figures; an hour at most
# make lint    gofmt, go vet, staticcheck

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: test test-faults test-temporal bench lint peers

# Lint vets everything and these binaries are not debugged, so vetting and debug information
# are left out. Under the race detector a process sleeps for a second before it exits, which tests
# that run themselves again and again pay for each time.
test: export GORACE = atexit_sleep_ms=10
test: peers lint
	$(GO) test -race -vet=off -ldflags=-w -timeout=25m ./...
	cd internal/powerloss && $(GO) vet ./... && $(GO) test ./...
	cd event/otel && $(GO) vet ./... && $(GO) test ./...
	cd trace/otlp/collectortest && $(GO) vet ./... && $(GO) test ./...
	cd engine/temporal && $(GO) vet ./... && $(GO) test ./...
	cd bench && $(GO) vet ./... && $(GO) test ./...

test-temporal:
	cd engine/temporal/servertest && $(GO) vet ./... && $(GO) test -timeout=30m -v ./...

test-faults:
	STONE_FAULTS=100 $(GO) test -count=1 -timeout=60m -v -parallel=8 -run='Random|Team|Zombies|Restarts|Budget' ./internal/killtest

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

bench:
	$(MAKE) -C bench bench
