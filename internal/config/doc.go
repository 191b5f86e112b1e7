// Package config finds the directory .stone of a project and reads what is
// configured there: which pipeline and which model are the project's, and who
// answers calls.
//
// The directory belongs to the project in which it stands, as .git does: it is
// looked for in a directory and in those above it. It holds a Go package whose
// Pipeline is the project's own, and may hold a configuration, stone.edn or
// stone.json, and settings.json. All are read strictly: what nobody knows is a
// fault, and all faults are told at once, each with its line and column.
//
// # Settings
//
// These keys may stand in settings.json, which has no others, and in the
// configuration, which goes first. All are optional, their values are strings:
//
//   - pipeline is the directory of a Go package, or a plan file, seen from the
//     project's directory. Default: .stone itself.
//   - provider is the protocol in which the model is asked: openai or anthropic.
//     Default: openai.
//   - model is the model that is asked.
//   - url is the server. Default: that of the provider.
//
// # The configuration
//
// Example is one with explanations. Its further keys are
//
//   - capabilities and tools: by their ids, with the fields of call.Metadata and
//     those of their kind, which are
//     llm (provider, model, prompts, max-tokens), command (command, dir, env,
//     max-output, scope), http (url, headers, max-body, scope), mcp (server, tool),
//     solver (solver: cel with expression, sat with variables, literals and
//     conflicts), chess (command, options, movetime-ms, scope), plan (file);
//   - providers of models: protocol, url, key, extra. Those named openai and
//     anthropic are there without being configured;
//   - servers that speak the Model Context Protocol: command, dir, env and sandbox
//     (writable, read-only, network, unconfined), or url and headers; timeout-ms, start-timeout-ms, idle-ms, scope;
//   - prices: of models, for capabilities that have none of their own;
//   - schemas, by their names, as they are or as {:file "path"}; intents;
//   - checks, by their names: an expression of CEL over call and out in a string,
//     or a map with one of schema, max-chars, regex, command and capability (with
//     score-min and rubric);
//   - policy (default, intents) and routing; the rubric of a judge is text or
//     {:file "path"};
//   - grant, principal and roles: what runs may do; budget: what they may spend;
//   - mode and limits (nodes, depth) of plans.
//
// Configurations are for sharing, so there are no secrets in them: a key is
// {:env "NAME"} or {:file "path"}, and it is read when it is used.
package config
