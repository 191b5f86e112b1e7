package record_test

import (
	"encoding/json"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/step"
)

func TestDoneSpent(t *testing.T) {
	price := budget.Amount{Roundtrips: 1, Tokens: 100, USD: 1}
	result := &step.Record{Content: json.RawMessage(`{"usage":{"input-tokens":7,"usd":0.5}}`)}
	for _, test := range []struct {
		name string
		done record.Done
		want budget.Amount
	}{
		{"lost twice", record.Done{Attempts: 2}, budget.Amount{Roundtrips: 2, Tokens: 200, USD: 2}},
		{"done", record.Done{Attempts: 1, Record: result}, budget.Amount{Roundtrips: 1, Tokens: 7, USD: 0.5}},
		{"done after a loss", record.Done{Attempts: 2, Record: result}, budget.Amount{Roundtrips: 2, Tokens: 107, USD: 1.5}},
		{"all attempts imported before", record.Done{Record: result}, budget.Amount{Tokens: 7, USD: 0.5}},
	} {
		test.done.Declared = price
		if got := test.done.Spent(); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
