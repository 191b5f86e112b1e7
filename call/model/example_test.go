package model_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// Receipt is the input of the call. The model sees the Scan as a picture.
type Receipt struct {
	Scan llm.Media `json:"scan"`
}

// Purchase is the answer of the call.
type Purchase struct {
	Shop  string `json:"shop"`
	Cents int    `json:"cents" jsonschema:"the total"`
}

// A model reads a picture from a file and answers with a value of a Go type.
func Example_picture() {
	receipt, purchase := dag.NewType[Receipt]("receipt"), dag.NewType[Purchase]("purchase")
	eye := model.New(call.Metadata{ID: "model/eye"}, model.Config{
		Model:  script.New(script.Text(`{"shop":"Bakery","cents":430}`)), // such as openai.New(openai.Config{Model: "gpt-5-mini"})
		Prompt: "Read the receipt.",
	})
	read := call.New("read", purchase, call.Spec{
		Applicator: &call.Applicator{Registry: call.NewRegistry(eye)},
		Intent:     "receipt/read",
		Input:      call.From(receipt),
	})

	scan, err := llm.ReadMedia("testdata/receipt.png")
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := receipt.Append(dag.DAG{}, Receipt{Scan: *scan})
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := stone.Run(context.Background(), read, stone.Config{Input: d})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(purchase.Of(res.Node))
	// Output: {Bakery 430} <nil>
}
