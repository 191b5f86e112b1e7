package stone_test

import (
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/stonetest"
)

// A test of a pipeline gives it an input and looks at the node that it makes. Where models take part, Mock has their answers.
func TestPipelineOfTheExample(t *testing.T) {
	h := stonetest.Mock(t)
	result := h.Run(support(), dag.Of(Ticket.With(TicketDoc{"my invoice is missing"})))
	if got := stonetest.Nearest(t, Reply, result.DAG); got.Text != "The invoice is on its way." {
		t.Errorf("answered %q", got.Text)
	}
}
