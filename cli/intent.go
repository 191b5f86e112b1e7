package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/terms"
)

// isIntent reports whether a PIPELINE is the name of an intent or a capability, which starts with a colon.
func isIntent(pipeline string) bool { return strings.HasPrefix(pipeline, ":") }

// overIntent calls do with a pipeline that consists of a call to an intent or a capability.
func (a *app) overIntent(c *cobra.Command, name string, after []string, do func(context.Context, stone.Ashlar) error) error {
	defer a.closeCalls()
	if len(after) > 0 {
		return fmt.Errorf("unexpected argument %q after --: %s takes none", after[0], name)
	}
	if err := onlyPlans(c, name); err != nil {
		return err
	}
	if err := a.relinked(c); err != nil {
		return err
	}
	conf, err := a.configured()
	if err != nil {
		return err
	}
	p, err := a.answering(conf.App, name)
	if err != nil {
		return err
	}
	k := &a.calls
	k.base.Grant = conf.Grant(k.grant)
	ctx, err := k.spending(c.Context(), c.Flags())
	if err != nil {
		return err
	}
	return do(ctx, p)
}

// answering returns an agent whose turns are calls to an intent or a capability.
func (a *app) answering(app *call.Applicator, name string) (p stone.Ashlar, err error) {
	name = strings.TrimPrefix(name, ":")
	spec, in, err := named(app, name)
	if err != nil {
		return p, err
	}
	if in != "" && in != terms.AnyRequest {
		return p, fmt.Errorf(":%s takes %s as its input, not the messages of a conversation: call it in a plan that reads the slots message and conversation", name, in)
	}
	if a.linked.server == nil {
		return p, fmt.Errorf(":%s cannot be called by this program: pass cli.Main the part of package github.com/stonelayer/stone/cli/serve", name)
	}
	return a.linked.server.Chat(name, app, spec), nil
}

// about returns the description of an intent or a capability for models that choose among tools. If none is configured, it
// returns a generic description.
func about(app *call.Applicator, name string) string {
	name = strings.TrimPrefix(name, ":")
	spec, _, err := named(app, name)
	if err != nil {
		return ""
	}
	if what := app.Intents[spec.Intent].Description; what != "" {
		return what
	}
	return "Send a message to " + name + ", and get its answer."
}

// aboutPlan returns a description of a plan that lists its calls.
func aboutPlan(app *call.Applicator, name string, p stone.Ashlar) string {
	var calls []string
	places(p, func(_ string, a stone.Ashlar) bool {
		if spec, ok := call.SpecOf(a); ok {
			one := cmp.Or(spec.Intent, spec.Cap)
			if what := app.Intents[spec.Intent].Description; what != "" {
				one += " (" + strings.TrimSuffix(what, ".") + ")"
			}
			if !slices.Contains(calls, one) {
				calls = append(calls, one)
			}
		}
		return true
	})
	const most = 8
	if len(calls) > most {
		calls = append(calls[:most], fmt.Sprintf("%d more", len(calls)-most))
	}
	if len(calls) == 0 {
		return "Run the plan " + name + "."
	}
	return "Run the plan " + name + ", which calls " + strings.Join(calls, ", ") + "."
}

// named returns the call to an intent or a capability, and the schema of its input.
func named(app *call.Applicator, name string) (spec call.Spec, in string, err error) {
	intents := slices.AppendSeq(slices.Sorted(maps.Keys(app.Intents)), app.Registry.Intents())
	if slices.Contains(intents, name) {
		return call.Spec{Intent: name}, app.Intents[name].In, nil
	}
	about, found := app.Registry.Lookup(name)
	if !found {
		known := append(intents, app.Registry.IDs()...)
		hint := "list them with the command model caps"
		if near := suggest.Closest(name, slices.Values(known)); near != "" {
			hint = "did you mean :" + near + "?"
		}
		return spec, "", fmt.Errorf("unknown intent or capability :%s: %s", name, hint)
	}
	spec.Cap = name
	if len(about.Intents) > 0 {
		spec.Intent = about.Intents[0]
	}
	return spec, cmp.Or(about.In, app.Intents[spec.Intent].In), nil
}
