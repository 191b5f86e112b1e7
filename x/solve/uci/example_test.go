package uci_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/x/solve/uci"
)

func ExampleLegalMove() {
	fmt.Println(uci.LegalMove(context.Background(), call.Subject{
		Request: &call.Request{Input: call.JSON(`{"fen": "4k3/8/8/8/8/8/8/4K2R w K - 0 1"}`)},
		Out:     call.JSON(`{"move": "h1h9"}`),
	}))
	// Output: "h1h9" is not a legal move in 4k3/8/8/8/8/8/8/4K2R w K - 0 1
}
