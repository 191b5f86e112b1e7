package hostile

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A loginServer is a server of tools for those who have logged in to it.
type loginServer struct {
	*server
	mu     sync.Mutex
	tokens []string
}

func newLoginServer(t *testing.T) *loginServer {
	t.Helper()
	s, mux := &loginServer{}, http.NewServeMux()
	s.server = newServer(t, mux)
	reply := func(pattern string, v func(*http.Request) map[string]any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			said := v(r)
			if pattern == "/register" {
				w.WriteHeader(http.StatusCreated)
			} else if said["error"] != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			json.NewEncoder(w).Encode(said)
		})
	}
	reply("/.well-known/oauth-authorization-server", func(*http.Request) map[string]any {
		return map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "registration_endpoint": s.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}}
	})
	reply("/register", func(*http.Request) map[string]any {
		return map[string]any{"client_id": "stone-1", "token_endpoint_auth_method": "none"}
	})
	reply("/token", func(r *http.Request) map[string]any {
		token := "access-" + rand.Text()
		s.mu.Lock()
		defer s.mu.Unlock()
		if old := r.FormValue("refresh_token"); old != "" && old != s.tokens[len(s.tokens)-1] {
			return map[string]any{"error": "invalid_grant"}
		}
		s.tokens = append(s.tokens, token, "renewal-"+token)
		return map[string]any{"access_token": token, "refresh_token": "renewal-" + token, "token_type": "Bearer", "expires_in": 3600}
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"c"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	// The tool returns the token, as a hostile or careless one might.
	of := sdk.NewServer(&sdk.Implementation{Name: "tools", Version: "1"}, nil)
	of.AddTool(&sdk.Tool{Name: "read", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "you are " + r.Extra.Header.Get("Authorization")}}}, nil
	})
	tools := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return of }, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		known := len(s.tokens) > 0 && r.Header.Get("Authorization") == "Bearer "+s.tokens[len(s.tokens)-2]
		s.mu.Unlock()
		if !known {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		tools.ServeHTTP(w, r)
	})
	return s
}

// A user logs in at the terminal. The tokens are in a file that only the user can read, and in no
// output, trace or journal, although the tool returns them.
func TestTokensAreSecrets(t *testing.T) {
	s := newLoginServer(t)
	p := newProject(t, map[string]string{
		"c.edn": `{:servers {:s {:url "` + s.URL + `/mcp" :oauth {}}} :tools {:x/t {:cap/kind :mcp :server :s :tool "read"}} :grant #{:net}}`,
		"p.edn": `{:nodes [{:op :tool :tool/id :x/t :input {} :as :a} {:op :emit :input {:slot/id :a}}]}`,
	})
	run := func() result { return p.stone("run", "--trace", "t.jsonl", "--config", "c.edn", "p.edn") }
	if r := run(); r.code == 0 || !strings.Contains(r.stderr, "nobody has logged in; run: stone login 's'") {
		t.Fatalf("before the login: %+v", r)
	}
	if r := p.stone("login", "--config", "c.edn", "t"); r.code == 0 || !strings.Contains(r.stderr, `no server "t" with :oauth`) {
		t.Errorf("another name: %+v", r)
	}
	shown := p.login("s", "--config", "c.edn")
	r := run()
	if r.code != 0 || !strings.Contains(r.stdout, "you are Bearer [redacted]") {
		t.Fatalf("%+v", r)
	}
	outputs := shown + r.stdout + r.stderr
	files := 0
	for _, dir := range append([]string{p.dir}, p.homes()...) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if info, _ := d.Info(); strings.Contains(path, "/stone/tokens/") {
				if files++; info.Mode().Perm() != 0o600 {
					t.Errorf("%s has the mode %v", path, info.Mode())
				}
				return err
			}
			outputs += string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files != 1 {
		t.Errorf("%d files with tokens", files)
	}
	s.mu.Lock()
	s.tokens[len(s.tokens)-2] = "revoked"
	s.mu.Unlock()
	if r = run(); r.code != 0 || !strings.Contains(r.stdout, "you are Bearer [redacted]") {
		t.Errorf("renewed: %+v", r)
	}
	outputs += r.stdout + r.stderr
	for _, token := range s.tokens {
		if strings.Contains(outputs, token) {
			t.Errorf("%s is in the outputs", token)
		}
	}
	s.mu.Lock()
	s.tokens = append(s.tokens, "another", "another")
	s.mu.Unlock()
	if r := run(); r.code == 0 || !strings.Contains(r.stderr, "the server refuses the token; run: stone login 's'") {
		t.Errorf("revoked: %+v", r)
	}
}

// homes returns the directories of the user.
func (p *project) homes() (dirs []string) {
	for _, v := range p.env {
		if home, ok := strings.CutPrefix(v, "HOME="); ok {
			dirs = append(dirs, home)
		}
	}
	return dirs
}

// login logs in to a server as a user does, and returns what the command prints.
func (p *project) login(args ...string) string {
	p.Helper()
	file, err := command()
	if err != nil {
		p.Fatal(err)
	}
	cmd := exec.CommandContext(p.Context(), file, append([]string{"login"}, args...)...)
	cmd.Dir, cmd.Env = p.dir, p.env
	out := &output{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	address := ""
	for deadline := time.Now().Add(time.Minute); address == "" && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for line := range strings.Lines(out.String()) {
			if _, at, ok := strings.Cut(line, "browser on this machine: "); ok && strings.HasSuffix(line, "\n") {
				address = strings.TrimSpace(at)
			}
		}
	}
	resp, err := http.Get(address)
	if err != nil {
		p.Fatal(err, out.String())
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if failed := cmd.Wait(); err != nil || failed != nil || !strings.Contains(string(page), "The login is done") {
		p.Fatal(fmt.Sprint(err, failed), string(page), out.String())
	}
	return out.String()
}

// output is what a process has printed so far.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer // unnamed it would lend Cmd its ReadFrom, which does not lock
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}
