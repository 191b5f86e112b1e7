package serve_test

import (
	"net/http"
	"testing"

	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/gateway"
	"github.com/stonelayer/stone/x/ui"
)

// protocols are the command's.
var protocols = []serve.Protocol{ui.Part, gateway.Part}

// serveAll starts a server with all protocols.
func serveAll(t testing.TB, cfg serve.Config, through ...func(http.Handler) http.Handler) *servetest.Server {
	t.Helper()
	cfg.Protocols = protocols
	return servetest.Start(t, cfg, through...)
}
