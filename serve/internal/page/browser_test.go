package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
)

var (
	update  = flag.Bool("update", false, "write the pictures of docs/images")
	shapes  = flag.Bool("shapes", false, "write the shapes of the views, of which TestBrowser allows no others")
	gallery = flag.String("gallery", "", "write a picture of each view at two widths in both themes to this `folder`")
)

// TestBrowser runs the specs of testdata/browser in Chromium, against a real program with
// real runs. With -update, it writes the pictures of the documents. STONE_PAGES_DB names a file that BenchmarkPages made. The spec about large runs then
// opens its run of a million steps.
func TestBrowser(t *testing.T) {
	need.Time(t)
	chromium, modules := need.Program(t, "chromium"), filepath.Dir(peer.Module(t, "playwright-core"))
	dir := t.TempDir()
	house := filepath.Join(dir, "house")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", house, "./testdata/house").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h := &program{T: t, path: house, db: filepath.Join(dir, "stone.db")}
	h.run(3, "run", "--id", "paused", "--", "article")
	h.run(0, "run", "--id", "fan", "--", "fan", "10000")
	h.run(1, "run", "--id", "failing", "--", "failing")
	h.run(1, "run", "--id", "failing2", "--", "failing")
	h.run(3, "run", "--id", "hostile", "--", "hostile")
	h.run(0, "run", "--id", "long", "--", "long")
	h.run(0, "run", "--id", "agent", "--", "agent")
	h.run(0, "run", "--id", "talk1", "--label", "chat=cups", "--label", "chat-turn=1", "--", "agent")
	h.run(0, "run", "--id", "talk2", "--label", "chat=cups", "--label", "chat-turn=2", "--", "agent")
	h.run(3, "run", "--id", "asksrefund", "--", "paying")
	h.run(3, "run", "--id", "asked", "--", "article")
	h.run(3, "run", "--id", "review", "--", "review")
	for _, strategy := range []string{"cascade", "race", "tournament"} {
		h.run(0, "run", "--id", strategy, "--", "call", strategy)
	}
	h.run(1, "run", "--id", "refused", "--", "call", "refused")
	h.run(3, "run", "--id", "paying", "--", "paying")
	h.run(0, "run", "--id", "improving", "--", "improving")
	h.kill("killed", "call", "slow")
	h.evaluate("old")
	h.evaluate("new", "careless")
	file := filepath.Join(dir, "run.html")
	h.run(0, "export", "failing", "--as", "html", "--to", file)
	h.run(0, "answer", "paused", "1", "yes") // more than a second later
	h.run(0, "resume", "paused")
	call := filepath.Join(dir, "call.html")
	h.run(0, "export", "cascade", "--as", "html", "--to", call)
	var signIn []string
	h.signIn = &signIn
	serve := func(pipeline ...string) string { // the last argument may be a flag
		args := []string{"serve", "--address", "127.0.0.1:0"}
		if last := len(pipeline) - 1; strings.HasPrefix(pipeline[last], "--") {
			args, pipeline = append(args, pipeline[last]), pipeline[:last]
		}
		p := &program{T: t, path: house, db: filepath.Join(dir, pipeline[0]+".db"), signIn: &signIn}
		return p.serve(slices.Concat(args, []string{"--"}, pipeline)...)
	}
	desk, offered := h.desk()
	library := &program{T: t, path: house, db: filepath.Join(dir, "library", "stone.db"), signIn: &signIn}
	library.index()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // on a loaded machine
	defer cancel()
	report := filepath.Join(dir, "report.html")
	h.run(0, "export", "new", "--as", "html", "--to", report)
	large := h.serve("inspect") + "/runs/fan"
	if file := os.Getenv("STONE_PAGES_DB"); file != "" {
		large = (&program{T: t, path: house, db: file, signIn: &signIn}).serve("inspect") + "/runs/million"
	}
	specs := exec.CommandContext(ctx, "node", "testdata/browser/specs.mjs")
	specs.Env = append(os.Environ(), "MODULES="+modules, "CHROMIUM="+chromium, "LARGE="+large, "DESK="+desk, "DESKSERVE="+offered, "HOUSE="+house, "DB="+h.db, "FILE="+file, "CALLFILE="+call, "REPORT="+report,
		"INSPECT="+h.serve("inspect"), "ANSWER="+h.serve("inspect", "--answer"), "SERVE="+serve("article"), "FAILS="+serve("failing"), "SLOW="+serve("slow", "200"), "SPEAKS="+serve("speaking"), "PRICED="+serve("call", "cascade"), "DESIGN="+serve("long", "--design"), "LIBRARY="+library.serve("serve", "--trust", "--address", "127.0.0.1:0", "--grant", "process", "--", "article"))
	specs.Env = append(specs.Env, "SIGNIN="+strings.Join(signIn, " ")) // after all servers have started
	if *update {
		pictures, err := filepath.Abs("../../../docs/images")
		if err != nil {
			t.Fatal(err)
		}
		specs.Env = append(specs.Env, "GALLERY="+pictures)
	}
	if *shapes {
		file, err := filepath.Abs("testdata/browser/shapes.json")
		if err != nil {
			t.Fatal(err)
		}
		specs.Env = append(specs.Env, "SHAPES="+file)
	}
	if *gallery != "" {
		if err := os.MkdirAll(*gallery, 0o755); err != nil {
			t.Fatal(err)
		}
		specs.Env = append(specs.Env, "VIEWS="+*gallery)
	}
	specs.Stderr = os.Stderr
	out, err := specs.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := specs.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for results := json.NewDecoder(out); ; n++ {
		var result struct {
			Name, Error, Figures string
			Seconds              float64
		}
		if err := results.Decode(&result); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		t.Run(result.Name, func(t *testing.T) {
			t.Logf("%.1f s", result.Seconds)
			if result.Figures != "" {
				t.Log(result.Figures)
			}
			if result.Error != "" {
				t.Error(result.Error)
			}
		})
	}
	if err := specs.Wait(); err != nil {
		t.Error(err)
	}
	if n < 25 && os.Getenv("SPEC") == "" {
		t.Errorf("%d specs ran", n)
	}
}

// kill starts a run and kills its process while the capability model/slow is asked.
func (p *program) kill(id string, pipeline ...string) {
	p.Helper()
	cmd := p.command(append([]string{"run", "--id", id, "--"}, pipeline...)...)
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	for {
		if out, err := p.command("show", id).CombinedOutput(); err == nil && strings.Contains(string(out), "model/slow") {
			break
		}
		if p.Context().Err() != nil {
			p.Fatal("the run does not ask model/slow")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		p.Fatal(err)
	}
	_ = cmd.Wait()
}

// evaluate evaluates the pipeline adding on sums, from the second time against the run old.
func (p *program) evaluate(id string, args ...string) {
	p.Helper()
	dir := filepath.Dir(p.db)
	var rows strings.Builder
	for i := range 40 {
		a, b := 7*i%50+1, 11*i%50+1
		fmt.Fprintf(&rows, `{"question":"%d + %d","expected":%d,"size":%q}`+"\n", a, b, a+b, []string{"small", "large"}[min((a+b)/50, 1)])
	}
	rows.WriteString(`{"question":"1 + 1 ?","expected":2,"size":"small"}`)
	gate := `{:no-worse-than {:exact 0.02} :usd-at-most 0.5}`
	for name, text := range map[string]string{"rows.jsonl": rows.String(), "gate.edn": gate} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	flags, code := []string{"eval", "-q", "--id", id, "--data", "rows.jsonl", "--score", "exact", "--slice", "size"}, 0
	if id != "old" {
		flags, code = append(flags, "--against", "old", "--gate", "gate.edn"), 5 // 41 cases cannot tell
	}
	p.run(code, append(append(flags, "--", "adding"), args...)...)
}

// index indexes documents, whose passages a program reorders.
func (p *program) index() {
	p.Helper()
	for name, text := range map[string]string{
		"docs/guide.md": "# Guide\n\n## Resume\n\nA run that was killed is resumed with the same id.\nRecorded steps are not repeated.\n\n## Budget\n\nA budget limits what a run may spend. <b>No run exceeds it.</b>\n",
		"docs/faq.md":   "# Questions\n\nWhat does a run cost? As much as its models.\n",
		".stone/stone.edn": `{:grant #{:fs/read} :search {:rerank :judge}
			:capabilities {:docs {:cap/kind :search} :judge {:cap/kind :command :cap/intents [:search/rerank] :command ["/bin/sh" "-c" "echo '{\"order\": [2, 0], \"scores\": [0.9, 0.25]}'"]}}}`,
	} {
		file := filepath.Join(filepath.Dir(p.db), name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			p.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			p.Fatal(err)
		}
	}
	p.run(0, "index", "--trust", "docs")
}

// program is a command with a database.
type program struct {
	*testing.T
	path, db string
	signIn   *[]string // the addresses that its servers print
}

func (p *program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.path, args...)
	cmd.Dir = filepath.Dir(p.db)
	cmd.Env = append(os.Environ(), "STONE_DB="+p.db)
	return cmd
}

// run runs a command that ends with an exit code.
func (p *program) run(code int, args ...string) {
	p.Helper()
	cmd := p.command(args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		p.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

var address = regexp.MustCompile(`http://\S+`)

// serve starts a command that serves, and returns its address without the token.
func (p *program) serve(args ...string) string {
	p.Helper()
	cmd := p.command(args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if at := address.FindString(lines.Text()); at != "" {
			go io.Copy(io.Discard, stderr)
			*p.signIn = append(*p.signIn, at)
			at, _, _ = strings.Cut(at, "/?")
			return at
		}
	}
	p.Fatalf("%s did not start", strings.Join(args, " "))
	return ""
}
