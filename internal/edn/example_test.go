package edn_test

import (
	"fmt"

	"github.com/stonelayer/stone/internal/edn"
)

// A program that reads a plan names the place of each fault it finds in it.
func Example() {
	plan := []byte(`{:id "greet"
 :nodes [{:op :call, :intnet :text/respond}]}`)

	v, err := edn.Read(plan, edn.Limits{})
	if err != nil {
		fmt.Printf("plan.edn:%v\n", err)
		return
	}
	nodes, _ := v.Field("nodes")
	for _, node := range nodes.Elements() {
		for key := range node.Entries() {
			name, ok := key.Name()
			if ok && name != "op" && name != "intent" {
				fmt.Printf("plan.edn:%v\n", key.Errorf("unknown field %s", key))
			}
		}
	}
	// Output: plan.edn:2:22: unknown field :intnet
}

func ExampleFormat() {
	v, err := edn.Read([]byte(`{:nodes [{:op :call :intent :text/respond :done {:must #{:short :non-empty}}}
		{:op :emit, :input {:final :answer}}], :id "greet"}`), edn.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", edn.Format(v))
	// Output:
	// {:id "greet"
	//  :nodes [{:done {:must #{:non-empty :short}}, :intent :text/respond, :op :call}
	//          {:input {:final :answer}, :op :emit}]}
}
