package serve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/serve"
)

// The pages that the documents of chat libraries show work in a browser as they are.
func TestChatPages(t *testing.T) {
	need.Time(t)
	for _, name := range []string{"@ai-sdk/react", "@assistant-ui/react-ai-sdk", "esbuild", "react-dom"} {
		peer.Module(t, name)
	}
	chromium, modules := need.Program(t, "chromium"), filepath.Dir(peer.Module(t, "playwright-core"))
	peer.Held(t, "@ai-sdk/react", "several approvals", "client tools", "a message during an approval", "regenerate", "edit", "stop", "reload", "a second device")
	peer.Held(t, "@assistant-ui/react-ai-sdk", "turns", "approvals", "client tools")
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	cmd := exec.CommandContext(t.Context(), "node", "testdata/chat/scenes.mjs")
	cmd.Env = append(os.Environ(), "STONE_URL="+q.URL, "MODULES="+modules, "CHROMIUM="+chromium)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, stderr.String())
	}
	golden(t, "testdata/chat/scenes.txt", string(out))
}
