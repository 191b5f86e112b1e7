// Package anthropic calls models over the Messages protocol of Anthropic and compatible
// servers.
//
//	model := anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5"})
//
// Some blocks must be sent back to the provider unchanged in the next turn: signed or redacted thinking, and the blocks of tools
// that the provider runs itself. The reply's metadata contains them under "anthropic/content". They are sent again verbatim as
// long as the message's text and tool calls still equal the reply's. The "anthropic/cache_control" of a message's metadata is set
// on its last block.
//
// The server caches a prompt only up to blocks that are marked. Request.Cache marks the tools, the system text and the end of the
// conversation. Including the breakpoints in the messages' metadata, at most 4 blocks are marked. Prefixes below the model's
// minimum, 1,024 tokens or more, are not cached. Writing costs 1.25 times the input price, and reading costs 0.1 times the input
// price.
//
// User messages and tool results may contain images (JPEG, PNG, GIF, WebP), PDF documents and text. Images and PDF documents may
// be given by URL.
//
// A turn that the provider pauses (stop reason pause_turn) is sent again until it ends;
// all of it is one reply.
package anthropic
