package journal

import (
	"errors"
	"testing"
)

func TestJoin(t *testing.T) {
	full, slow := errors.New("the disk is full"), errors.New("it took too long")
	failed := errors.Join(errors.New("the run failed"), full)
	for _, c := range []struct {
		first error
		more  []error
		want  string
	}{
		{nil, []error{nil, nil}, ""},
		{nil, []error{nil, slow, full}, "it took too long; the disk is full"},
		{slow, []error{nil, full}, "it took too long; the disk is full"},
		{failed, []error{full, nil}, "the run failed\nthe disk is full"},
		{full, []error{full, slow, full}, "the disk is full; it took too long"},
	} {
		got := join(c.first, c.more...)
		if said(got) != c.want {
			t.Errorf("join(%v, %v) = %q, want %q", c.first, c.more, said(got), c.want)
		}
		for _, err := range append(c.more, c.first) {
			if err != nil && !errors.Is(got, err) {
				t.Errorf("join(%v, %v) is not %v", c.first, c.more, err)
			}
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
