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

// Usage reads the usage of a step from its record: from the field "usage" of its content, or from the key "usage" in its failure's
// meta. Call it only for steps that have declared a cost (see Declared), because in other contents the field may have a different
// meaning.
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

// Ended reports whether the cost of a step that ended with err and without a result is known, because the account refused the
// step or the error contains its usage. Ended returns that usage. The amount declared comes from the context of Do. If a step has
// declared nothing, the steps within it are counted separately.
func Ended(declared budget.Amount, err error) (used budget.Usage, ok bool) {
	used, ok = budget.CostOf(err)
	if declared == (budget.Amount{}) {
		return budget.Usage{}, ok || Refused(err)
	}
	return used, ok
}

// Refused reports whether err means that an account refused to pay.
func Refused(err error) bool {
	return errors.As(err, new(*budget.ExhaustedError)) || errors.As(err, new(*budget.UnpricedError))
}
