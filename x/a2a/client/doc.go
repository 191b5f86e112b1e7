// Package client makes agents that speak the Agent2Agent protocol (A2A) available as capabilities. It supports versions 1.0 and
// 0.3 of the protocol, over JSON-RPC or REST:
//
//	registry := call.NewRegistry(
//		client.New(call.Metadata{ID: "agent/travel", Intents: []string{"trip/plan"}}, client.Config{URL: "https://travel.example.com"}),
//	)
//
// The input of a request becomes the message. It is sent as text if it is a string or an object with a single string, such as
// {"text": …}, and as data otherwise. Files in the input become file parts. The schema of the input says which values are files;
// without a schema, each llm.Media in the list "media" is a file. If the agent's answer is a single data part, the output is its
// data. Otherwise the output is {"text": …}, with "data" if there are several data parts and "media" if there are files.
//
// # Durability
//
// If the run is recorded, the id of the remote task is recorded as soon as it is known, and a resumed run waits for this task.
// The ids of the message and its context are derived from the request's key. If the process dies before the task's id is
// recorded and the agent can list tasks, the resumed run finds the task by its context. If the agent cannot, the resumed run
// sends the same message again, and many agents recognize it by its id. If a task has failed or is lost, the resumed run creates
// a new task.
//
// If a task needs input, the run asks a question with the agent's text and choices. Outside a run, or if no one can answer, the
// request fails with an error that contains the agent's question. If a request is canceled or times out, the task is canceled.
// Draining a run does not cancel its tasks.
package client
