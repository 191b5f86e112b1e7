// Package client makes agents that speak the Agent2Agent protocol (A2A) available as capabilities. It supports versions 1.0 and
// 0.3 of the protocol, over JSON-RPC or REST:
//
//	registry := call.NewRegistry(
//		client.New(call.Metadata{ID: "agent/travel", Intents: []string{"trip/plan"}}, client.Config{URL: "https://travel.example.com"}),
//	)
//
// The input of a request is sent as the message: as text if it is a string or an object with only one string, such as {"text":
// …}, otherwise as data. Files are sent as file parts: the files that the input's schema marks or, without a schema, each
// llm.Media in the list "media". If the agent answers with a single data part, its data is the output. Otherwise the output is
// {"text": …}, with "data" for several data parts and "media" for files.
//
// # Durability
//
// In a recorded run, the id of the remote task is recorded as soon as it is known, and a resumed run waits for this task. The ids
// of the message and of its context are derived from the key of the request. If the process dies before the task's id is
// recorded, a resumed run finds the task by its context if the agent can list tasks. Otherwise it sends the same message again,
// which many agents recognize. If a task has failed or is lost, resuming the run creates a new one.
//
// When a task needs input, the run asks its people, using the agent's text and choices. Outside a run, or if nobody can be asked,
// the request fails with an error that contains the agent's question. A request that is cancelled or times out cancels the task.
// Draining a run does not cancel it.
package client
