package log

import "testing"

// Rows that were taken do not stay in the order of the rows that were read ahead.
func TestAheadForgetsTakenRows(t *testing.T) {
	a := newKnown().ahead
	for i := range 100 * batch {
		h := half{byte(i), byte(i >> 8)}
		a.put(h, &Row{})
		if i > 0 && a.take(h) == nil { // the first one stays
			t.Fatalf("row %d is gone", i)
		}
	}
	if len(a.rows) != 1 || len(a.order) > 2*batch {
		t.Errorf("%d rows in an order of %d, want one row in an order of at most %d", len(a.rows), len(a.order), 2*batch)
	}
}
