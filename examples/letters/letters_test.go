package letters

import (
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/stonetest"
)

func TestReader(t *testing.T) {
	model := stonetest.Mock(t, stonetest.JSON(Order{7, "angry"}), stonetest.JSON(Order{7, "late"}))
	res := model.Run(Reader(model.Model()), dag.Of(Letter.With("Where is my order 7?")))
	if got := stonetest.Nearest(t, Read, res.DAG); got != (Order{7, "late"}) {
		t.Errorf("got %v", got)
	}
}
