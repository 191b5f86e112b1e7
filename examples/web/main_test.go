package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
)

// asWeb is set in the processes of the test that serve the page.
const asWeb = "STONE_TEST_WEB"

func TestMain(m *testing.M) {
	if os.Getenv(asWeb) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A conversation in a browser survives a reload in the middle of an answer, and a kill of the server.
func TestBrowser(t *testing.T) {
	need.Time(t)
	chromium := need.Program(t, "chromium")
	modules := filepath.Dir(peer.Module(t, "playwright-core"))
	peer.Module(t, "ai7")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "testdata/browser.mjs")
	cmd.Env = append(os.Environ(), asWeb+"=1", "WEB="+self, "MODULES="+modules, "CHROMIUM="+chromium, "DB="+filepath.Join(t.TempDir(), "web.db"), fmt.Sprintf("ADDRESS=127.0.0.1:%d", peer.FreePort(t)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
