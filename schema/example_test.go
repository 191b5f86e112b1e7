package schema_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/schema"
)

func Example() {
	type Item struct {
		Name  string  `json:"name" jsonschema:"as on the bill"`
		Price float64 `json:"price"`
	}
	type Bill struct {
		Items []Item `json:"items"`
		Note  string `json:"note,omitempty"`
	}
	bill, err := schema.For[Bill]()
	if err != nil {
		fmt.Println(err)
		return
	}
	err = bill.Validate(context.Background(), []byte(`{"items":[{"name":"tea","price":"2.50"},{"price":3}]}`))
	var invalid *schema.ValidationError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Detail())
	}
	// Output:
	// items[0].price: want number, got string "2.50"
	// items[1]: property "name" is required, but missing
}

func ExampleCompatible() {
	type Draft struct {
		Text  string   `json:"text"`
		Words float64  `json:"words"`
		Links []string `json:"links,omitempty"`
	}
	type Review struct {
		Text  string   `json:"text"`
		Words int      `json:"words"`
		Links []string `json:"links"`
		Score int      `json:"score"`
	}
	producer, err1 := schema.For[Draft]()
	consumer, err2 := schema.For[Review]()
	if err := errors.Join(err1, err2); err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range schema.Compatible(producer, consumer) {
		fmt.Println(p)
	}
	// Output:
	// links: required, but the producer may leave it out
	// score: required, but the producer never writes it
	// words: want integer, the producer writes number
}

func ExampleSchema_At() {
	s, err := schema.Parse([]byte(`{
		"type": "object",
		"properties": {"verdicts": {"type": "array", "items": {"enum": ["pass", "fail"]}}}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	verdict, ok := s.At("verdicts", "0")
	values, closed := verdict.Enum()
	fmt.Println(ok, closed, values)
	_, ok = s.At("verdict")
	fmt.Println(ok, s.Properties())
	// Output:
	// true true [pass fail]
	// false [verdicts]
}
