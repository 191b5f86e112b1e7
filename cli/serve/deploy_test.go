package serve_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/x/cel"
)

const deployed = "../../deploy/"

// documents reads a file of YAML.
func documents(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(deployed + name)
	if err != nil {
		t.Fatal(err)
	}
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var one map[string]any
		if err := in.Decode(&one); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
}

// at returns a value within maps and lists; a list is entered at its first element.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, "/") {
		if list, ok := v.([]any); ok && len(list) > 0 {
			v = list[0]
		}
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func words(v any) (all []string) {
	list, _ := v.([]any)
	for _, w := range list {
		s, _ := w.(string)
		all = append(all, s)
	}
	return all
}

// wantServe checks a command line of serve, and that its grace is over before its host kills it.
func wantServe(t *testing.T, args []string, killedAfter time.Duration) {
	t.Helper()
	c, err := cli.Command(cli.Config{Parts: parts, Pipeline: cli.FromArgument, Name: "stone"})
	if err != nil {
		t.Fatal(err)
	}
	found, rest, err := c.Find(args)
	if err == nil {
		err = found.ParseFlags(rest)
	}
	if err != nil || found.Name() != "serve" {
		t.Fatalf("%q: %v", args, err)
	}
	if grace, err := found.Flags().GetDuration("grace"); err != nil || grace+10*time.Second > killedAfter {
		t.Errorf("%q has a grace of %v, %v; killed after %v", args, grace, err, killedAfter)
	}
}

func TestCompose(t *testing.T) {
	file := documents(t, "compose.yaml")[0]
	for _, name := range []string{"serve", "worker-1", "worker-2"} {
		s := at(file, "services/"+name)
		for path, want := range map[string]any{"user": "65532:65532", "read_only": true, "stop_grace_period": "75s", "environment/STONE_TRUST": "1"} {
			if got := at(s, path); got != want {
				t.Errorf("%s: %s is %v, want %v", name, path, got, want)
			}
		}
		if volumes := words(at(s, "volumes")); !slices.Contains(volumes, "./secrets/tokens:/tokens:ro") || !slices.Contains(words(at(s, "command")), "--tokens=/tokens/tokens.json") {
			t.Errorf("%s does not read the folder of tokens, in which a file can be replaced: %q", name, volumes)
		}
		args := words(at(s, "command"))
		wantServe(t, args, 75*time.Second)
		if !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--host=") && strings.Contains(a, name) }) {
			t.Errorf("%q does not serve the host %s", args, name)
		}
		if _, err := os.Stat(deployed + "project/" + args[1]); err != nil {
			t.Error(err)
		}
	}
	targets := words(at(documents(t, "prometheus/prometheus.yml")[0], "scrape_configs/static_configs/targets"))
	if got := strings.Join(targets, " "); got != "serve:8080 worker-1:8080 worker-2:8080" {
		t.Errorf("Prometheus reads %s", got)
	}
	for _, name := range []string{"postgres", "prometheus", "grafana"} {
		if at(file, "services/"+name+"/image") == nil {
			t.Errorf("no service %s", name)
		}
	}
}

// No service has a default password, only the servers reach the database, and every secret is made before the first start.
func TestComposeIsClosed(t *testing.T) {
	file := documents(t, "compose.yaml")[0]
	text, err := os.ReadFile(deployed + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"services/grafana/environment/GF_SECURITY_ADMIN_PASSWORD__FILE": "/run/secrets/grafana",
		"services/postgres/environment/POSTGRES_PASSWORD_FILE":          "/run/secrets/postgres",
		"networks/database/internal":                                    true,
	} {
		if got := at(file, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	for name := range at(file, "secrets").(map[string]any) {
		if !strings.Contains(string(text), "> deploy/secrets/"+name+"\n") && !strings.Contains(string(text), "> deploy/secrets/"+name+" ") {
			t.Errorf("nothing makes the secret %s", name)
		}
	}
	reach := map[string][]string{"postgres": {"serve", "worker-1", "worker-2"}, "prometheus": {"serve", "worker-1", "worker-2", "grafana"}, "grafana": {"prometheus"}}
	for of, services := range reach {
		for name := range at(file, "services").(map[string]any) {
			shared := slices.ContainsFunc(words(at(file, "services/"+name+"/networks")), func(n string) bool {
				return slices.Contains(words(at(file, "services/"+of+"/networks")), n)
			})
			if name != of && shared != slices.Contains(services, name) {
				t.Errorf("%s and %s share a network: %v", of, name, shared)
			}
		}
	}
}

// The project of the deployment runs as it is.
func TestDeployedProject(t *testing.T) {
	t.Chdir(deployed + "project")
	t.Setenv("STONE_TRUST", "1")
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{
		Parts: []cli.Part{cel.Part}, Pipeline: cli.FromArgument, Name: "stone", Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Args: []string{"run", "-q", "--no-db", "greet.edn", "--bind", "name=Ada"},
	})
	if code != cli.Done || out.String() != "Hello, Ada\n" {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
}

func TestKubernetes(t *testing.T) {
	kinds := map[string]map[string]any{}
	for _, d := range documents(t, "kubernetes/stone.yaml") {
		kinds[d["kind"].(string)] = d
	}
	pod := at(kinds["Deployment"], "spec/template/spec")
	for path, want := range map[string]any{
		"securityContext/runAsNonRoot":                      true,
		"containers/securityContext/readOnlyRootFilesystem": true,
		"containers/livenessProbe/httpGet/path":             "/healthz",
		"containers/startupProbe/httpGet/path":              "/healthz",
		"containers/readinessProbe/httpGet/path":            "/readyz",
		"automountServiceAccountToken":                      false,
	} {
		if got := at(pod, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	wantServe(t, words(at(pod, "containers/args")), time.Duration(at(pod, "terminationGracePeriodSeconds").(int))*time.Second)
	labels := at(kinds["Deployment"], "spec/template/metadata/labels/app")
	if s, b := at(kinds["Service"], "spec/selector/app"), at(kinds["PodDisruptionBudget"], "spec/selector/matchLabels/app"); s != labels || b != labels || labels == nil {
		t.Errorf("pods are %v, the service selects %v, the budget %v", labels, s, b)
	}
	if p := at(kinds["NetworkPolicy"], "spec/podSelector/matchLabels/app"); p != labels || len(words(at(kinds["NetworkPolicy"], "spec/policyTypes"))) != 2 {
		t.Errorf("pods are %v, the policy of the network selects %v", labels, p)
	}
	if least, all := at(kinds["PodDisruptionBudget"], "spec/minAvailable").(int), at(kinds["Deployment"], "spec/replicas").(int); least >= all {
		t.Errorf("of %d replicas %d must be there: no node can be drained", all, least)
	}
}

var metricName = regexp.MustCompile(`\bstone_[a-z_]+`)

// Servers make every metric in the dashboard and the rules, and every label. A server shows a metric only once it has a value, so
// they are read from the source.
func TestDashboards(t *testing.T) {
	source, err := os.ReadFile("../../serve/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	known, labels := map[string]bool{}, map[string]bool{"le": true, "job": true}
	for _, m := range regexp.MustCompile(`m\.set\.\w+\("(stone_\w+)", "[^"]+"([^)]*)\)`).FindAllStringSubmatch(string(source), -1) {
		known[m[1]] = true
		for _, label := range regexp.MustCompile(`"(\w+)"`).FindAllStringSubmatch(m[2], -1) {
			labels[label[1]] = true
		}
	}
	if len(known) < 14 {
		t.Fatalf("the source has %d metrics", len(known))
	}
	used := map[string]bool{}
	for _, name := range []string{"grafana/stone.json", "prometheus/rules.yml"} {
		text, err := os.ReadFile(deployed + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metricName.FindAllString(string(text), -1) {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				m = strings.TrimSuffix(m, suffix)
			}
			if used[m] = true; !known[m] {
				t.Errorf("%s: no server has the metric %s", name, m)
			}
		}
		for _, m := range regexp.MustCompile(`(?:by \(([^)]*)\)|\{(\w+)=)`).FindAllStringSubmatch(string(text), -1) {
			for label := range strings.SplitSeq(m[1]+m[2], ", ") {
				if !labels[label] {
					t.Errorf("%s: no metric has the label %s", name, label)
				}
			}
		}
	}
	for m := range known {
		if strings.HasPrefix(m, "stone_") && !used[m] {
			t.Errorf("nothing shows the metric %s", m)
		}
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	file, err := os.ReadFile(deployed + "grafana/stone.json")
	if err = errors.Join(err, json.Unmarshal(file, &board)); err != nil || len(board.Panels) < 10 {
		t.Errorf("%d panels, %v", len(board.Panels), err)
	}
	states := []string{"refused", "interrupted", "failed", "dropped"}
	rules, _ := os.ReadFile(deployed + "prometheus/rules.yml")
	for _, m := range regexp.MustCompile(`(?:state|result)="([a-z]+)"`).FindAllStringSubmatch(string(rules), -1) {
		if !slices.Contains(states, m[1]) {
			t.Errorf("no metric has %s", m[0])
		}
	}
}

func TestRules(t *testing.T) {
	promtool := need.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", deployed + "prometheus/rules.yml"}, {"check", "config", "--syntax-only", deployed + "prometheus/prometheus.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v: %s", args, err, out)
		}
	}
}
