// Package answers provides capabilities of kind answers, which reply from a file of recorded
// answers. A public recording can thus replace the model itself:
//
//	small := answers.New(call.Metadata{ID: "model/small", Cost: call.Cost{Price: budget.Price{In: 0.15, Out: 0.6}}}, answers.Config{
//		File: "responses.jsonl",
//		Key:  answers.Key{"prompt": {"question"}},
//		Text: answers.Path{"responses", "gpt-4o-mini", "text"},
//	})
//
// A file is JSON Lines. Without further configuration, a row looks like
//
//	{"id": "q1", "model": "gpt-4o-mini", "text": "…", "usage": {"input_tokens": 7, "output_tokens": 9}, "latency": 120}
//
// and answers requests whose input has the same value in the field "id". The capability reads only the values that its [Config]
// names. It ignores all other columns, such as the expected answer.
//
// Answers are treated as in package call/model: the text is the output, or is parsed if the call wants JSON. If no usage is
// recorded, tokens are estimated from the texts. A request without a recorded answer fails with "runtime/not-recorded", and the
// error names the most similar recorded request. Such a request is not retried, and no other candidate is invoked.
//
// The capability's version is a digest of the file, unless its metadata sets one.
package answers
