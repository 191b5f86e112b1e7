package dag_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/dag"
)

// temperature has methods with a pointer receiver, like many types of other packages.
type temperature struct{ degrees int }

func (t *temperature) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d C"`, t.degrees), nil
}

func (t *temperature) UnmarshalJSON(raw []byte) error {
	_, err := fmt.Sscanf(strings.Trim(string(raw), `"`), "%d C", &t.degrees)
	return err
}

// What is written by a method is read by its counterpart, wherever the type stands.
func TestPointerReceivers(t *testing.T) {
	plain, inside := dag.NewType[temperature]("plain"), dag.NewType[struct{ T temperature }]("inside")
	var d dag.DAG
	d, err := plain.Append(d, temperature{21})
	if err != nil {
		t.Fatal(err)
	}
	if d, err = inside.Append(d, struct{ T temperature }{temperature{22}}); err != nil {
		t.Fatal(err)
	}
	a, err := plain.From(d)
	if err != nil || a.degrees != 21 {
		t.Errorf("read %+v, %v; want 21", a, err)
	}
	b, err := inside.From(d)
	if err != nil || b.T.degrees != 22 {
		t.Errorf("read %+v, %v; want 22", b, err)
	}
}
