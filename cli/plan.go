package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli/internal/config"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/regular"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/plan"
)

// isPlan reports whether a PIPELINE argument is the name of a plan file.
func isPlan(pipeline string) bool {
	ext := filepath.Ext(pipeline)
	return ext == ".edn" || ext == ".json"
}

// noPlan returns an error for a PIPELINE that looks like a file but is neither a plan nor a package, such as sort.end.
func noPlan(pipeline string) error {
	info, err := os.Stat(pipeline)
	ext := filepath.Ext(pipeline)
	if err == nil && info.IsDir() || err != nil && (ext == "" || strings.Contains(ext, "/")) || ext == ".go" {
		return nil
	}
	hint := ""
	if files, err := os.ReadDir(filepath.Dir(pipeline)); err == nil {
		near := suggest.Closest(filepath.Base(pipeline), func(yield func(string) bool) {
			for _, f := range files {
				if isPlan(f.Name()) && !yield(f.Name()) {
					return
				}
			}
		})
		if near != "" {
			hint = ": did you mean " + filepath.Join(filepath.Dir(pipeline), near) + "?"
		}
	}
	if err != nil && hint == "" {
		return nil // package paths may also end like this
	}
	return fmt.Errorf("%s is neither a plan (.edn or .json) nor a directory with a Go package%s", pipeline, hint)
}

// overPlan reads and compiles a plan, and then calls do. If the plan does not compile, do is called only by commands that report
// faults.
func (a *app) overPlan(c *cobra.Command, file string, after []string, do func(context.Context, stone.Ashlar) error) error {
	defer a.closeCalls()
	k := &a.calls
	for _, name := range []string{"input", "input-dag"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s applies only to packages: set the inputs of a plan with --bind NAME=VALUE", name)
		}
	}
	if err := a.readPlan(file, after, c.Name() == "run"); err != nil {
		return err
	}
	if err := a.relinked(c); err != nil {
		return err
	}
	if err := a.fillApplicator(false); err != nil {
		return err
	}
	if err := a.resumedSlots(c); err != nil {
		return err
	}
	var p stone.Ashlar
	err := k.refused.Err()
	switch {
	case err != nil:
	case c.Annotations[givenLater] != "":
		p, err = openPlan(k.plan, k.conf.App, &k.opts)
	default:
		p, err = k.plan.Ashlar(k.conf.App, k.opts)
	}
	if err != nil && c.Name() != "run" && c.Name() != "validate" {
		if err := printFindings(a.Stderr, k.findings(k.base)); err != nil {
			return output(err)
		}
		return &exitError{code: Failed}
	}
	ctx, err := k.spending(c.Context(), c.Flags())
	if err != nil {
		return err
	}
	return do(ctx, p)
}

// resumedSlots sets the slots of a resumed run to their recorded values.
func (a *app) resumedSlots(c *cobra.Command) error {
	f, k := c.Flags(), &a.calls
	if c.Name() != "run" || !f.Changed("resume") {
		return nil
	}
	input, err := a.recordedInput(c.Context(), f.Lookup("resume").Value.String(), f.Lookup("id").Value.String())
	if err != nil || input.Len() == 0 {
		return err
	}
	k.base.Input = input
	for n := range input.Nodes() {
		k.opts.Slots = append(k.opts.Slots, n.Type())
	}
	return nil
}

// openPlan compiles a plan that has slots without a value before the run. It adds these slots to opts, so that expressions can
// use them, too.
func openPlan(p *plan.Plan, app *call.Applicator, opts *plan.Options) (stone.Ashlar, error) {
	made, err := p.Ashlar(app, *opts)
	if err != nil {
		return made, err
	}
	for _, in := range tree.Inputs(made) {
		opts.Slots = append(opts.Slots, in.Type.Name())
	}
	return p.Ashlar(app, *opts)
}

// readPlan reads the plan and the values of its slots. If run is true, every slot must have a value.
func (a *app) readPlan(file string, after []string, run bool) error {
	if len(after) > 0 {
		return fmt.Errorf("unexpected argument %q after --: a plan takes --bind NAME=VALUE", after[0])
	}
	if of, _ := filepath.Abs(file); filepath.Base(filepath.Dir(of)) == config.Name && slices.Contains([]string{"stone.edn", "stone.json", "settings.json"}, filepath.Base(of)) {
		return fmt.Errorf("%s is the configuration, not a plan: check it with %s config check, or run one of its intents, such as :text/answer", file, a.Name)
	}
	data, err := regular.Read(file, regular.Config)
	if errors.Is(err, fs.ErrNotExist) {
		beside, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*.edn")) // an invalid pattern, from an unusual folder name, matches nothing
		hint := suggest.Hint(file, slices.Values(beside))
		if hint == "" && len(beside) > 0 {
			hint = fmt.Sprintf(": the plans here are %s", strings.Join(beside[:min(len(beside), maxShown)], ", "))
		}
		return fmt.Errorf("no plan file %s%s", file, cmp.Or(hint, fmt.Sprintf(": %s init plan writes one", a.Name)))
	} else if err != nil {
		return err
	}
	conf, err := a.configured()
	if err != nil {
		return err
	}
	k := &a.calls
	if k.base.Input, k.opts.Slots, err = bound(k.bind, run); err != nil {
		return err
	}
	k.opts.Slots = append(k.opts.Slots, k.slots...)
	k.file, k.base.Grant = file, conf.Grant(k.grant)
	k.opts.Limits, k.opts.Mode = conf.Plan.Limits, cmp.Or(k.mode.value, conf.Plan.Mode)
	k.plan, err = plan.Read(data)
	if invalid, ok := errors.AsType[*stone.Invalid](err); ok {
		k.refused, err = invalid.Findings, nil
	}
	if err == nil && k.plan != nil && k.plan.Inputs() != nil {
		for _, name := range k.opts.Slots[:len(k.bind)] {
			if inputs := k.plan.Inputs(); !slices.Contains(inputs, name) {
				return fmt.Errorf("--bind %s: the plan has no such input%s", name, suggest.Hint(name, slices.Values(inputs)))
			}
		}
	}
	return err
}

// likeJSON matches texts that start like an object or a list in JSON.
var likeJSON = regexp.MustCompile(`^\s*(\{\s*"|\[\s*["{])`)

// bound returns a plan's initial slots, with the values given by --bind, and the names of all slots. A slot without a value is
// null, which is sufficient for checking the plan.
func bound(bindings []string, values bool) (d dag.DAG, names []string, err error) {
	slots := map[string]any{}
	for _, b := range bindings {
		name, value, ok := strings.Cut(b, "=")
		name = strings.TrimPrefix(name, ":")
		if _, twice := slots[name]; twice || name == "" {
			return d, nil, fmt.Errorf("--bind %s: want NAME=VALUE, each name once", text.Cut(text.Line(b), 40))
		}
		if values && !ok {
			return d, nil, fmt.Errorf("--bind %s has no value: want --bind %[1]s=VALUE", name)
		}
		file, isFile := strings.CutPrefix(value, "@")
		if isFile {
			data, err := os.ReadFile(file)
			if err != nil {
				return d, nil, fmt.Errorf("--bind %s: %w", name, err)
			}
			value = string(data)
		}
		if slots[name] = nil; ok {
			slots[name] = value // a value that is not JSON is a string
			if data, err := canon.AppendJSON(nil, []byte(value)); err == nil {
				slots[name] = json.RawMessage(data)
			}
		}
		if _, isText := slots[name].(string); isText && !isFile && likeJSON.MatchString(value) {
			return d, nil, fmt.Errorf("--bind %s: the value begins like JSON but is not valid: correct it, or write a text as a JSON string", name)
		}
		names = append(names, name)
	}
	if d, err = plan.Bind(d, slots); err != nil {
		return d, nil, fmt.Errorf("--bind: %w", err)
	}
	return d, names, nil
}

// findings returns the findings for the plan. Their positions refer to the plan's file.
func (k *calls) findings(cfg stone.Config) stone.Findings {
	findings := k.refused
	if k.plan != nil {
		findings = k.plan.Check(k.conf.App, k.opts, cfg)
	}
	findings = slices.Clone(findings)
	for i, f := range findings {
		k.silent = k.silent || f.Type == "nothing-emitted"
		to := ": "
		if startsWithPlace.MatchString(f.Message) {
			to = ":"
		}
		findings[i].Message = k.file + to + f.Message
		findings[i].Ashlar = cmp.Or(f.Ashlar, "plan")
		findings[i].Path = cmp.Or(f.Path, findings[i].Ashlar)
		if f.Type == "missing-producer" && (k.plan == nil || k.plan.Inputs() == nil || k.promised(f)) {
			findings[i].Message += fmt.Sprintf(", as --bind %s=VALUE", f.Queried)
			if slices.Contains(k.opts.Slots, f.Suggestion) {
				findings[i].Message += ", not --bind " + f.Suggestion
				findings[i].Suggestion = ""
			}
		}
		if m := wants.FindStringSubmatch(f.Message); m != nil && f.Type == "schema-mismatch" && slices.ContainsFunc(k.bind, func(b string) bool { return strings.HasPrefix(b, f.Queried+"=") }) {
			findings[i].Message += fmt.Sprintf(": write --bind '%s=%s'", f.Queried, written[m[1]])
		}
	}
	return findings
}

// wants matches an error about a --bind value of a wrong type; written shows how a value of each type is written.
var (
	wants   = regexp.MustCompile(`does not fit the schema: want (array|object|string),`)
	written = map[string]string{"array": `["…", "…"]`, "object": `{"…": "…"}`, "string": `"…"`}
)

var startsWithPlace = regexp.MustCompile(`^\d+:\d+: `)
