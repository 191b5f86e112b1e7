// Package crash contains a run that is killed between two steps and then resumed:
//
//	DIE=1 go run ./cmd/stone run --id order-7 ./examples/crash
//	go run ./cmd/stone resume order-7
package crash

import (
	"context"
	"os"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

var (
	Paid = dag.NewType[string]("paid")
	Sent = dag.NewType[string]("sent")
)

var Pipeline = stone.Seq("order",
	stone.Func0("pay", Paid, func(context.Context) (string, error) {
		println("paying")
		return "receipt 1", nil
	}),
	stone.Func("send", Paid, Sent, func(_ context.Context, receipt string) (string, error) {
		if os.Getenv("DIE") != "" {
			os.Exit(137) // as if the process had been killed
		}
		return "sent with " + receipt, nil
	}),
)
