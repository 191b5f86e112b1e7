package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/internal/docs"
)

// named are values of the types of fields that name something outside the configuration.
var named = []string{
	`"https://attacker.example/x"`, `"postgres://attacker.example/x"`, `"/attacker"`, `"/attacker.edn"`,
	`["/attacker"]`, `["ATTACKER"]`, `{:env "ATTACKER"}`, `{:file "/attacker"}`, `{:x {:env "ATTACKER"}}`, `{:x {:file "/attacker"}}`,
}

// texts are the fields that take such a value and reach nothing with it, by their sections.
var texts = map[string]string{
	"":             "cap/version cap/tags",
	"Budgets":      "labels pipeline",
	"Checks":       "regex schema",
	"Embedder":     "model",
	"Intents":      "description",
	"Judge":        "rubric",
	"Kind answers": "key model text usage latency",
	"Kind acp":     "dir mode",
	"Kind chess":   "options",
	"Kind command": "dir",
	"Kind go":      "args in out",
	"Kind http":    "headers",
	"Kind llm":     "model",
	"Kind mcp":     "tool",
	"Kind search":  "under where",
	"Models":       "model provider",
	"OAuth":        "client scopes",
	"Params":       "effort service-tier cache-ttl tool-choice stop metadata",
	"Principal":    "id",
	"Prompts":      "default role intents",
	"Providers":    "extra",
	"Sandbox":      "writable read-only",
	"Scope":        "fs process net",
	"Serve":        "url live ignore-tools",
	"Servers":      "dir env headers",
	"Telemetry":    "service",
	"Top level":    "model pipeline grant schemas",
	"Webhooks":     "tenant pipelines",
}

// further are fields without which another one of a probe is not taken.
var further = map[string]string{"OAuth": `:client "c"`, "Judge": `:on true`, "Webhooks": ":private true"}

// TestReachesEveryField gives every field of the configuration, as the page of the reference lists them, values that name
// an address, a program, a key, a variable and a file. Reaches, which trust shows, has each that the field takes.
func TestReachesEveryField(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	for name, text := range map[string]string{"attacker": "{}", "attacker.edn": "{:nodes [{:op :emit :input {:a 1}}]}"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), ".stone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "../f"), []byte("{:nodes [{:op :emit :input {:a 1}}]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	fields := docs.Keys(string(page))
	var taken []string
	for _, section := range slices.Sorted(maps.Keys(probes)) {
		known := fields[section]
		if strings.HasPrefix(section, "Kind ") {
			known = slices.Concat(known, fields["Capabilities"])
		}
		for _, field := range known {
			for _, value := range named {
				value = strings.ReplaceAll(value, `"/`, `"`+outside+"/")
				for _, text := range probesOf(probes[section], further[section], field, value) {
					lines, took := reached(t, dir, text)
					if !took {
						continue
					}
					if strings.Contains(strings.ToLower(strings.Join(lines, "\n")), "attacker") {
						taken = append(taken, section+"."+field)
					} else if !slices.Contains(strings.Fields(texts[""]+" "+texts[section]), field) {
						t.Errorf("%s: the field %s takes %s, which Reaches leaves out: %q", section, field, value, lines)
					}
				}
			}
		}
	}
	for section, fields := range map[string]string{
		"Top level": "url key schemas", "Providers": "url key", "Prompts": "default role intents", "Kind answers": "file", "Kind command": "command dir env", "Kind http": "url headers",
		"Kind acp": "command allow test", "Kind chess": "command", "Kind search": "index", "Search": "index", "Kind plan": "file", "Kind go": "package", "Servers": "command dir env url headers",
		"OAuth": "secret", "Checks": "command schema", "Judge": "rubric", "Webhooks": "url secret old-secret", "Telemetry": "url headers",
	} {
		for _, field := range strings.Fields(fields) {
			if !slices.Contains(taken, section+"."+field) {
				t.Errorf("%s: the field %s took no value", section, field)
			}
		}
	}
}

// probesOf returns the configurations with a field in the place of each unknown field in a probe.
func probesOf(probe, further, field, value string) (texts []string) {
	const unknown = ":?? 1"
	for at := 0; ; at++ {
		next := strings.Index(probe[at:], unknown)
		if next < 0 {
			return texts
		}
		at += next
		depth, start := 0, at
		for start--; start > 0 && (depth > 0 || probe[start] != '{'); start-- {
			switch probe[start] {
			case '}', ']':
				depth++
			case '{', '[':
				depth--
			}
		}
		same := regexp.MustCompile(`:` + regexp.QuoteMeta(field) + ` ("[^"]*"|\[[^\]]*\]|\{[^{}]*\})`)
		own := same.ReplaceAllString(probe[start:at], "")
		if (field == "url" || field == "command") && !strings.Contains(probe[start:at], ":cap/kind") {
			own = regexp.MustCompile(`:(url|command) ("[^"]*"|\[[^\]]*\])`).ReplaceAllString(own, "")
		}
		texts = append(texts, strings.ReplaceAll(probe[:start]+own+further+" :"+field+" "+value+probe[at+len(unknown):], unknown, ""))
	}
}

// reached loads a configuration, and returns what it reaches if it has no fault.
func reached(t *testing.T, dir, text string) (lines []string, took bool) {
	t.Helper()
	file := filepath.Join(dir, "stone.edn")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, err := config.Load(file, &linked)
	if err != nil {
		return nil, false
	}
	defer conf.Close()
	settings, err := config.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return append(conf.Reaches(), settings.Reaches()), true
}

// A line hides another one only if it says the same of the same program or address.
func TestReachesEachKey(t *testing.T) {
	a := `:capabilities {:a {:cap/kind :http :url "https://api.example" :headers {:authorization {:env "K"}}}`
	const ofA = "a sends requests to https://api.example, with the key in $K"
	for text, want := range map[string][]string{
		a + ` :b {:cap/kind :command :command ["/bin/true"] :env ["K"]}}`: {
			ofA, "b starts the program /bin/true", "capabilities.b.env passes on the variable $K"},
		a + ` :b {:cap/kind :command :command ["/bin/true"] :env ["K"]} :c {:cap/kind :command :command ["/bin/true"] :env ["K"]}}`: {
			ofA, "b starts the program /bin/true", "c starts the program /bin/true", "capabilities.b.env passes on the variable $K", "capabilities.c.env passes on the variable $K"},
		a + `} :servers {:s {:url "https://other.example" :headers {:authorization {:env "K"}}}}`: {
			ofA, "servers.s.url sends requests to https://other.example", "servers.s.headers.authorization uses the key in $K"},
		a + `} :providers {:p {:protocol :openai :url "https://other.example" :key {:env "K"}}}`: {
			ofA, "providers.p.url sends requests to https://other.example", "providers.p.key uses the key in $K"},
		a + `} :checks {:c {:command ["/bin/true"]}} :servers {:s {:command ["/bin/true"] :env {:T {:env "K"}}}}`: {
			ofA, "servers.s.command starts the program /bin/true", "servers.s.env.T uses the key in $K", "checks.c.command starts the program /bin/true"},
		`:servers {:s {:url "https://s.example" :headers {:authorization {:env "K"}}}} :capabilities {:m {:cap/kind :mcp :server :s :tool "t"}}`: {
			"m sends requests to https://s.example, with the key in $K"},
		`:providers {:p {:protocol :openai :url "https://p.example" :key {:env "K"}}} :capabilities {:m {:cap/kind :llm :provider :p :model "m"}}`: {
			"m sends requests to https://p.example, with the key in $K"},
		`:webhooks {:w {:url "https://w.example" :secret {:env "K"}}} :telemetry {:url "https://t.example" :headers {:env "K"}}`: {
			"the webhook w sends the questions and results of runs to https://w.example, with the key in $K",
			"telemetry sends the events of runs to https://t.example, with the key in $K"},
	} {
		conf, err := load(t, "{"+text+"}")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := conf.Reaches()
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
}
