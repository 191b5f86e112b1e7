// Package anthropic asks models over the Messages protocol, as Anthropic speaks it and
// the servers that are compatible.
//
//	model := anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5"})
//
// What must go back to the provider unread in the next turn, such as signed or redacted
// thinking and the blocks of tools that the provider runs itself, is kept in the
// reply's metadata under "anthropic/content" and is sent again as it came, as long as
// the message's text and tool calls are still those of the reply. A message with
// "anthropic/cache_control" in its metadata gets that on its last block.
//
// A turn that the provider pauses (stop reason pause_turn) is sent again until it ends;
// all of it is one reply.
package anthropic
