// Package answers makes capabilities of files of recorded answers, of kind answers. So a public
// recording of a model takes the place of the model:
//
//	small := answers.New(call.Metadata{ID: "model/small", Cost: call.Cost{Price: budget.Price{In: 0.15, Out: 0.6}}}, answers.Config{
//		File: "responses.jsonl",
//		Key:  answers.Key{"prompt": {"question"}},
//		Text: answers.Path{"responses", "gpt-4o-mini", "text"},
//	})
//
// A file is JSON Lines. Without further configuration a row is
//
//	{"id": "q1", "model": "gpt-4o-mini", "text": "…", "usage": {"input_tokens": 7, "output_tokens": 9}, "latency": 120}
//
// and answers the requests whose input has the field "id" with this value. The capability reads only
// the values that its [Config] names: other columns of the file, such as the right answer, do not
// reach it.
//
// An answer is treated as that of a model, see package call/model: its text is the out, or JSON if
// the call wants JSON. Without a recorded usage, tokens are estimated from the texts. A request that
// was not recorded fails with [call.NotRecorded] and names the nearest one; it is not repeated, and no
// other candidate is asked.
//
// The version of the capability is a digest of the file, unless its metadata has one.
package answers
