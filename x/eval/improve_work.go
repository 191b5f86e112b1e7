package eval

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/money"
)

// A version is a version of the prompts, with its attempts at the cases of dev.
type version struct {
	texts    map[string]string
	attempts map[string]attempt
}

// value returns the version's score in the case with the id. If there is no score, because a provider or a scorer failed, it
// returns 0, so that the version counts as no better than any other in this case.
func (v *version) value(id string) float64 { return v.attempts[id].Value }

// work is the state of an improvement.
type work struct {
	*improver
	Revision
	pool    []*version // the first version has the original prompts
	perCase float64    // mean cost of a case in USD
	perTry  float64    // cost of a proposal in USD
}

// run is the body of the leaf that does all the work. Decisions that depend on the remaining budget are recorded, because a
// resumed run has already paid for the rounds that it replays.
func (m *improver) run(ctx context.Context, d dag.DAG) (*dag.Node, error) {
	w := &work{improver: m, Revision: Revision{Cases: len(m.dev.ids)}}
	err := w.begin(ctx, d)
	for n := 1; err == nil && w.Stopped == ""; n++ {
		w.Stopped, err = stone.Step(ctx, fmt.Sprint("stops-", n), n, func(ctx context.Context, n int) (string, error) { return w.stops(ctx, n), nil })
		if err == nil && w.Stopped == "" {
			err = w.round(ctx, d, n)
		}
	}
	if err == nil {
		err = w.finish(ctx, d)
	}
	if err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: Improved.Name(), Content: w.Revision, Parents: d.Next()})
}

// begin answers the cases of dev with the original prompts.
func (w *work) begin(ctx context.Context, d dag.DAG) error {
	attempts, usd, err := w.dev.answers(ctx, d, w.texts, w.dev.ids)
	if err != nil {
		return err
	}
	w.USD, w.perCase = usd, usd/float64(len(w.dev.ids))
	w.pool = []*version{{w.texts, attempts}}
	if n := len(w.dev.ids) - len(w.scored(w.pool[0])); 2*n > len(w.dev.ids) {
		return fmt.Errorf("%d of %d cases of dev have no score, since providers or scorers failed: fix the failures, and run improve again", n, len(w.dev.ids))
	}
	w.tell(ctx, fmt.Sprintf("the prompts as they are: %s of dev", mean4(w.mean(w.pool[0], w.pool[0]).Mean)))
	_, err = stone.Step(ctx, "starts", len(w.test.ids), func(ctx context.Context, _ int) (bool, error) {
		if left := budget.From(ctx).Left().USD; left != nil && *left < w.testCost() {
			return false, &budget.ExhaustedError{Limit: "max-usd", Spent: usd, Max: usd + *left, Enough: usd + w.roundCost() + w.testCost()}
		}
		return true, nil
	})
	return err
}

// testCost returns the expected cost of the test, which the budget must still be able to pay after the rounds.
func (w *work) testCost() float64 { return 2 * w.perCase * float64(len(w.test.ids)) }

// roundCost returns the highest expected cost of a round.
func (w *work) roundCost() float64 { return w.perTry + w.perCase*float64(len(w.dev.ids)) }

// stops returns the reason why there must be no n-th round, or "" if there may be one.
func (w *work) stops(ctx context.Context, n int) string {
	left := budget.From(ctx).Left().USD
	switch {
	case n > w.improver.Rounds:
		return "all rounds are done"
	case left != nil && *left < w.roundCost()+w.testCost():
		return fmt.Sprintf("the %s that are left are for the test", money.USD(*left, false))
	case slices.ContainsFunc(w.pool, func(v *version) bool { return len(w.short(v)) == 0 && len(w.scored(v)) == len(w.dev.ids) }):
		return "a version falls short in no case of dev"
	}
	return ""
}

// short returns the ids of the cases in which the version's answer is wrong or missing.
func (w *work) short(v *version) (ids []string) {
	for _, id := range w.dev.ids {
		if verdict := v.attempts[id].Verdict; verdict == wrong || verdict == noAnswer {
			ids = append(ids, id)
		}
	}
	return ids
}

// round requests the n-th proposal and tries it.
func (w *work) round(ctx context.Context, d dag.DAG, n int) error {
	chance := rand.New(rand.NewPCG(w.Data.Seed, uint64(n)))
	from := w.parent(chance)
	parent := w.pool[from]
	shown := w.short(parent)
	chance.Shuffle(len(shown), func(i, k int) { shown[i], shown[k] = shown[k], shown[i] })
	shown = shown[:min(len(shown), w.Shown)]
	r := round{Prompt: w.names[(n-1)%len(w.names)], From: from, Cases: len(shown)}
	text, why, err := w.propose(ctx, d, r.Prompt, parent, shown)
	if err != nil {
		return err
	}
	if r.Why = why; text != "" {
		if err := w.try(ctx, d, &r, parent, shown, text); err != nil {
			return err
		}
	}
	w.Rounds = append(w.Rounds, r)
	w.tell(ctx, fmt.Sprintf("round %d: %s", n, r))
	return nil
}

// try answers the cases of a proposal with the new prompt and, if the new version is better in these, the rest of dev.
func (w *work) try(ctx context.Context, d dag.DAG, r *round, parent *version, shown []string, text string) error {
	texts := maps.Clone(parent.texts)
	texts[r.Prompt] = text
	attempts, usd, err := w.dev.answers(ctx, d, texts, shown)
	if err != nil {
		return err
	}
	w.USD += usd
	v := &version{texts, attempts}
	for _, id := range shown {
		r.Before, r.After = r.Before+parent.value(id), r.After+v.value(id)
	}
	if r.After <= r.Before {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(w.dev.ids), func(id string) bool { return slices.Contains(shown, id) })
	if len(rest) > 0 {
		more, usd, err := w.dev.answers(ctx, d, texts, rest)
		if err != nil {
			return err
		}
		w.USD += usd
		maps.Copy(v.attempts, more)
	}
	w.pool = append(w.pool, v)
	r.Version = len(w.pool) - 1
	r.Dev = w.mean(v, v).Mean
	return nil
}

// parent draws the version to be revised next from the versions that fall short in some case and that no other version dominates.
// A version's probability is proportional to the number of cases in which it is best.
func (w *work) parent(chance *rand.Rand) int {
	weights := make([]int, len(w.pool))
	total := 0
	for _, id := range w.dev.ids {
		best := w.pool[0].value(id)
		for _, v := range w.pool {
			best = max(best, v.value(id))
		}
		for i, v := range w.pool {
			if v.value(id) == best && len(w.short(v)) > 0 && !w.matched(i) {
				weights[i]++
				total++
			}
		}
	}
	at := chance.IntN(total)
	for i, n := range weights {
		if at -= n; at < 0 {
			return i
		}
	}
	panic("unreachable")
}

// matched reports whether another version is at least as good as the i-th version in every case and better in at least one. Of
// several equal versions, all but the first are matched.
func (w *work) matched(i int) bool {
	for k, other := range w.pool {
		better, worse := k < i, false
		for _, id := range w.dev.ids {
			mine, its := w.pool[i].value(id), other.value(id)
			better, worse = better || its > mine, worse || its < mine
		}
		if k != i && better && !worse {
			return true
		}
	}
	return false
}

// mean estimates the mean score of v on the cases of dev in which both v and other have a score.
func (w *work) mean(v, other *version) Estimate {
	var values []float64
	at := w.scored(v, other)
	for _, i := range at {
		values = append(values, v.value(w.dev.ids[i]))
	}
	return averageOf(values, w.dev.e.clusters(at))
}

// scored returns the indexes of the cases of dev in which all versions have a score.
func (w *work) scored(versions ...*version) (at []int) {
	for i, id := range w.dev.ids {
		if !slices.ContainsFunc(versions, func(v *version) bool { a, ok := v.attempts[id]; return !ok || a.Verdict == errored }) {
			at = append(at, i)
		}
	}
	return at
}

// finish tests the best version, unless it is the original.
func (w *work) finish(ctx context.Context, d dag.DAG) error {
	best, gain, first := 0, 0.0, w.pool[0]
	for i, v := range w.pool {
		more := w.mean(v, first).Mean - w.mean(first, v).Mean
		if more > gain && 2*len(w.scored(v, first)) > len(w.dev.ids) {
			best, gain = i, more
		}
	}
	w.Before, w.After = w.mean(first, w.pool[best]), w.mean(w.pool[best], first)
	if best == 0 {
		return nil
	}
	for _, name := range w.names {
		if text := w.pool[best].texts[name]; text != w.texts[name] {
			w.Changes = append(w.Changes, change{name, w.texts[name], text})
		}
	}
	w.tell(ctx, fmt.Sprintf("version %d answers the test", best))
	before, usd, err := w.test.answers(ctx, d, w.texts, w.test.ids)
	if err != nil {
		return err
	}
	w.USD += usd
	after, usd, err := w.test.answers(ctx, d, w.pool[best].texts, w.test.ids)
	if err != nil {
		return err
	}
	w.USD += usd
	w.Test = w.compare(before, after)
	return nil
}

// compare compares the scores of two versions in the test cases in which both have a score.
func (w *work) compare(before, after map[string]attempt) *tested {
	t := &tested{Looks: w.improver.Looks + 1}
	var was, is []float64
	var at []int
	for i, id := range w.test.ids {
		a, b := before[id], after[id]
		if a.Verdict == errored || b.Verdict == errored {
			t.Errors++
			continue
		}
		was, is, at = append(was, a.Value), append(is, b.Value), append(at, i)
	}
	clusters := w.test.e.clusters(at)
	t.Before, t.After, t.Difference = averageOf(was, clusters), averageOf(is, clusters), difference(was, is, clusters)
	return t
}

// improveEvent is the event that reports the progress of an improvement.
const improveEvent = "eval-improve"

func (w *work) tell(ctx context.Context, text string) {
	stone.In(ctx).Event(slog.LevelInfo, improveEvent, slog.String("text", text))
}

// A proposal is the answer of the revising capability.
type proposal struct {
	Why    string `json:"why"`    // what the failures have in common, in one or two sentences
	Prompt string `json:"prompt"` // the whole new prompt
}

// A question is the input of the revising capability.
type question struct {
	Prompt string `json:"prompt"`
}

var (
	critique = dag.NewType[question]("eval/critique")
	proposed = dag.NewType[proposal]("eval/proposal")
)

// maxPrompt is the maximum size of a prompt in bytes.
const maxPrompt = 64 << 10

// propose requests a better prompt and returns its text. If there is no usable answer, text is "" and why is the reason.
func (w *work) propose(ctx context.Context, d dag.DAG, name string, parent *version, shown []string) (text, why string, err error) {
	q, err := w.critique(parent.texts[name], parent, shown)
	if err != nil {
		return "", "", err
	}
	start, err := critique.Append(d, question{q})
	if err != nil {
		return "", "", err
	}
	account := budget.From(ctx).Under(address.Child(stone.In(ctx).Path(), w.revise.Name(), len(w.Rounds)+1))
	out := stone.In(budget.With(ctx, account)).RunChild(w.revise, start).Within(nil)
	w.perTry = account.Used().USD // failed proposals cost something too
	w.USD += w.perTry
	if err := out.Cause(); out.InFlight() {
		if ctx.Err() != nil || ends(err) || broken(err) {
			return "", "", ending(err)
		}
		return "", "no proposal: " + err.Error(), nil
	}
	n, err := out.Nearest(proposed.Name())
	if err != nil {
		return "", "", err
	}
	p, err := proposed.Of(n)
	switch text = strings.TrimSpace(p.Prompt); {
	case err != nil:
		return "", "", err
	case text == "":
		return "", "no proposal: the new prompt is empty", nil
	case text == strings.TrimSpace(parent.texts[name]):
		return "", "no proposal: the prompt would stay as it is", nil
	case len(text) > maxPrompt:
		return "", fmt.Sprintf("no proposal: the new prompt has %d bytes, at most %d are allowed", len(text), maxPrompt), nil
	}
	return text, p.Why, nil
}
