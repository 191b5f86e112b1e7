// Package config finds the .stone directory of a project and reads its configuration: the project's pipeline and model, and the
// capabilities that answer calls.
//
// Like .git, the directory belongs to the project around it, and is found by searching upward. It contains a Go package with the
// project's Pipeline, and can contain a configuration, stone.edn or stone.json, and settings.json. Both files are read strictly:
// an unknown field is a fault. All faults are reported at once, each with its line and column.
//
// # Settings
//
// The following keys can be set in settings.json, which allows no others, and in the configuration, which takes precedence. All
// values are optional strings:
//
//   - pipeline is the directory of a Go package, or a plan file, relative to the project's directory. Default: .stone itself.
//   - provider is the protocol of the model: anthropic; gemini; openai, which is Responses for
//     OpenAI's own servers and Chat Completions for all others; openai-responses or
//     openai-chat, to choose one of them. Default: openai.
//   - model is the model's name.
//   - url is the server. Default: the provider's.
//
// # The configuration
//
// Example is a commented configuration. The other keys of a configuration are
//
//   - capabilities and tools, by id, with the fields of call.Metadata and the fields of their kind: llm (provider, model,
//     prompts, max-tokens, params), answers (file, model, key, text, usage, latency), command (command, dir, env, max-output,
//     scope, loopback), http (url, headers, max-body, scope), mcp (server, tool), solver (solver: cel with expression, sat with
//     variables, literals and conflicts), chess (command, options, movetime-ms, scope), plan (file), go (package, args, in, out);
//   - providers of models: protocol, url, key, extra, and limits (requests-per-minute, tokens-per-minute, concurrency,
//     processes), retry (max, wait-ms, max-wait-ms) and timeouts (first-byte-ms, silence-ms, total-ms). The providers openai,
//     anthropic and gemini need no configuration;
//   - servers that speak the Model Context Protocol: command, dir, env and sandbox
//     (writable, read-only, network, loopback, unconfined), or url, headers and oauth (client, secret, scopes); protocol, timeout-ms, start-timeout-ms, idle-ms, scope;
//   - models: the table of models, with the date, the window, the price and the features of each (audio, files, images, schema,
//     thinking, tools, video). Capabilities use these prices unless they have their own;
//   - schemas, by name, given inline or as {:file "path"}; intents;
//   - checks, by name: a string that contains a CEL expression over call and out, or a map with one of schema, max-chars, regex,
//     command and capability (with score-min and rubric);
//   - policy (default, intents) and routing; the rubric of a judge is text or
//     {:file "path"};
//   - grant, principal and roles: what runs may do; budget: what they may spend;
//   - webhooks of a server, by name: url, secret, old-secret, pipelines, tenant, private;
//   - serve: live lists the intents and pipelines whose answers stone serve streams to
//     clients of OpenAI's protocols before the gate has accepted them;
//   - the mode and the limits (nodes, depth) of plans.
//
// Configurations are meant to be shared, so they do not contain secrets: a key is given as {:env "NAME"} or {:file "path"}, and
// is read when it is used.
package config
