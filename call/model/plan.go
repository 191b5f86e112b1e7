package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
)

// planShaped returns an error unless the text could be a plan, that is, a map with nodes. The error describes the text. The
// planner checks everything else.
func planShaped(text string) error {
	v, err := edn.ReadEither([]byte(text), edn.Limits{})
	if err != nil {
		switch first := strings.IndexAny(text, "{["); {
		case strings.Contains(text, "```"):
			return fmt.Errorf("it has several code blocks, or text before an unclosed one: give the plan alone, without a code block (%w)", err)
		case first < 0:
			return errors.New("it is text: want a map with nodes")
		case first > 0 || !strings.HasSuffix(text, "}"):
			return fmt.Errorf("it has text around it: want the map with nodes and nothing else (%w)", err)
		}
		return err
	}
	if _, ok := v.Field("nodes"); v.Kind() == edn.KindMap && ok {
		return nil
	}
	switch v.Kind() {
	case edn.KindVector:
		return errors.New(`it is a list: want a map with the list under "nodes"`)
	case edn.KindList:
		return errors.New(`forms are not evaluated: want a map with nodes, such as {:nodes [{:op :emit :input "done"}]}`)
	case edn.KindMap:
		if _, ok := v.Field("op"); ok {
			return errors.New(`it is one node: want a map with a list of nodes under "nodes"`)
		}
		for key, inner := range v.Entries() {
			name, _ := key.Name()
			if _, ok := inner.Field("nodes"); ok {
				return fmt.Errorf("the plan is within %q: want the map with nodes alone", name)
			}
			if inner.Kind() == edn.KindVector && inner.Len() > 0 && inner.At(0).Kind() == edn.KindMap {
				return fmt.Errorf("it has a list under %q: write \"nodes\" for it", name)
			}
		}
	}
	return errors.New("want a map with nodes")
}

// again is the instruction that follows the faults in a model's plan.
const again = "Answer with the whole corrected plan and nothing else."

// draft returns the reason why a plan cannot run, as text for the model, or nil if the plan can run.
func (w *wanted) draft(body string) *structured.Misfit {
	if err := planShaped(body); err != nil {
		return noPlan(err)
	}
	refused := w.guide.Refuse([]byte(body))
	if refused == nil {
		return nil
	}
	return &structured.Misfit{Tell: w.guide.Tell([]byte(body), refused.Findings()) + again, Err: refused}
}

// asksHelp reports whether the model's answer is a request for the whole guide.
func asksHelp(text string) bool {
	v, err := edn.ReadEither([]byte(text), edn.Limits{})
	if err != nil || v.Kind() != edn.KindMap || v.Len() != 1 {
		return false
	}
	_, ok := v.Field("help")
	return ok
}

// refused splits the context of a request to repair a plan. It returns the context without the rejected plan, and two messages:
// the plan, as the model's own answer, and the findings.
func (w *wanted) refused(context call.JSON) (rest call.JSON, said []llm.Message) {
	var fields map[string]json.RawMessage
	var repair struct {
		Plan     string
		Failure  struct{ Message string }
		Findings stone.Findings
	}
	if w.guide == nil || json.Unmarshal(context, &fields) != nil || json.Unmarshal(fields["repair"], &repair) != nil || repair.Plan == "" {
		return context, nil
	}
	delete(fields, "repair")
	if len(fields) > 0 {
		rest, _ = json.Marshal(fields) // the fields have just been decoded
	}
	tell := w.guide.Tell([]byte(repair.Plan), repair.Findings)
	if len(repair.Findings) == 0 {
		tell = "The plan was refused: " + repair.Failure.Message + "\n"
	}
	tell += again
	return rest, []llm.Message{llm.Assistant(repair.Plan), llm.User(tell)}
}

// helped returns the misfit for a model that has requested the whole guide. The misfit tells the model the guide.
func (w *wanted) helped() *structured.Misfit {
	return &structured.Misfit{Tell: planned + w.guide.Whole, Err: errors.New("the model requested help")}
}
