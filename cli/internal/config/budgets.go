package config

import (
	"math"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/form"
)

// mostName bounds the names of budgets, which are part of a key.
const mostName = 64

// readBudgets reads the budgets of many runs.
func (r *reader) readBudgets(m *form.Map) {
	m.At("budgets").Entries(func(name string, v form.Value) {
		b := budget.Rule{Shared: budget.Shared{Name: name}}
		if len(name) > mostName {
			v.Fault(form.Invalid, "expected a name of at most %d bytes", mostName)
		}
		v.Map(func(m *form.Map) {
			usd, bounded := m.Field("max-usd")
			form.Ptr(&b.Limits.USD, func(to *float64) bool { return usd.Float(to, 0, math.MaxFloat64) })
			for key, to := range map[string]**int{"max-tokens": &b.Limits.Tokens, "max-roundtrips": &b.Limits.Roundtrips} {
				n, given := m.Field(key)
				bounded = bounded || given
				form.Ptr(to, func(to *int) bool { return n.Int(to, 0, math.MaxInt) })
			}
			m.At("per").OneOf((*string)(&b.Per), string(budget.Day), string(budget.Month))
			m.At("pipeline").Text(&b.Pipeline)
			m.At("labels").Entries(func(name string, v form.Value) {
				value := ""
				v.Text(&value)
				if b.Labels == nil {
					b.Labels = map[string]string{}
				}
				b.Labels[name] = value
			})
			if !bounded {
				v.Fault(form.Invalid, "expected max-usd, max-tokens or max-roundtrips: a budget without them limits nothing")
			}
		})
		r.Budgets = append(r.Budgets, b)
	})
}
