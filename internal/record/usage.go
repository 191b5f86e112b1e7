package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/step"
)

// Usage reads the usage of a step from its record: a budget.Usage in the field "usage"
// of its content, or in the meta of its failure under "usage". It is only meant
// for steps that have declared a cost, see Declared: in other contents the field
// has another meaning.
func Usage(rec step.Record) budget.Usage {
	var found struct {
		Usage budget.Usage `json:"usage"`
	}
	content := []byte(rec.Content)
	if rec.Failure != nil {
		content = fmt.Appendf(nil, `{"usage":%s}`, cmp.Or(rec.Meta[terms.UsageNote], "{}"))
	}
	if !bytes.Contains(content, []byte(`"usage":{`)) || json.Unmarshal(content, &found) != nil {
		return budget.Usage{}
	}
	return found.Usage.Sane()
}

// Ended reports whether the cost of a step that ended with err, and without a result, is known: the account refused it, or the
// error contains its usage, which Ended returns. Declared is the amount of the context of Do. Steps within a step that has
// declared nothing are counted separately.
func Ended(declared budget.Amount, err error) (used budget.Usage, ok bool) {
	used, ok = budget.CostOf(err)
	if declared == (budget.Amount{}) {
		return budget.Usage{}, ok || Refused(err)
	}
	return used, ok
}

// Refused reports whether err means that an account did not pay.
func Refused(err error) bool {
	return errors.As(err, new(*budget.ExhaustedError)) || errors.As(err, new(*budget.UnpricedError))
}
