// Package openapi generates the OpenAPI 3.1 document of stone serve from a table of operations, the Go types in package api, and
// the comments in their source. The server embeds the document, and tests in package serve keep it up to date, so no program links
// this package.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone/serve/api"
)

type object = map[string]any

// Patterns returns the patterns of the routes that the document describes.
func Patterns() []string { return slices.Sorted(maps.Keys(operations)) }

// Generate returns the document. Root is the directory of the module, whose source it reads.
func Generate(root string) ([]byte, error) {
	d := &document{types: types{comments: comments{root: root}, schemas: object{}}}
	paths := map[string]object{}
	for pattern, op := range operations {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.ReplaceAll(path, "...}", "}")
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = d.operation(path, op)
	}
	hook := object{"post": object{
		"operationId": "receiveNotice", "tags": []string{"webhooks"}, "summary": "A run has ended, or is asking a question",
		"description": "The request is signed as in Standard Webhooks 1.0. Without a 2xx response, it is sent again with the same webhook-id.",
		"security":    []object{},
		"requestBody": object{"required": true, "content": d.content(body{"application/json", api.Notice{}})},
		"responses":   object{"2XX": object{"description": "The notice was accepted."}, "4XX": object{"description": "The notice was not accepted, and is sent again later."}},
	}}
	problems := object{}
	for status, p := range failures {
		problems[p.name] = object{"description": p.description, "content": d.content(problem...)}
		if status == 401 {
			problems[p.name].(object)["headers"] = object{"WWW-Authenticate": object{"schema": object{"type": "string"}}}
		}
	}
	var tags []object
	for _, t := range places {
		tags = append(tags, object{"name": t[0], "description": t[1]})
	}
	if d.err != nil {
		return nil, d.err
	}
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Stone", "version": "1", "description": "Published pipelines, with durable runs.",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []object{{"url": "/", "description": "The server that returned this document."}},
		"tags":     tags,
		"paths":    paths,
		"webhooks": object{"notice": hook},
		"security": []object{{"token": []string{}}, {}},
		"components": object{
			"schemas": d.schemas, "responses": problems,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "A token created with stone token create. A server started with --insecure requires none."}},
		},
	}, "", " ")
}

// document collects the schemas that operations refer to.
type document struct{ types }

// inPath matches a parameter in a path pattern.
var inPath = regexp.MustCompile(`\{(\w+)\}`)

func (d *document) operation(path string, op operation) object {
	out := object{"operationId": op.id, "tags": []string{op.tag}, "summary": op.summary}
	if op.description != "" {
		out["description"] = op.description
	}
	if op.open {
		out["security"] = []object{{}}
	}
	var given []any
	failing := append([]int{400, 401, 403, 429, 503}, op.fails...)
	for _, name := range inPath.FindAllStringSubmatch(path, -1) {
		given = append(given, object{"name": name[1], "in": "path", "required": true, "description": named[name[1]], "schema": object{"type": "string"}})
		failing = append(failing, 404)
	}
	for _, name := range op.params {
		if parameters[name] == nil {
			d.fail("there is no parameter %q", name)
		}
		given = append(given, parameters[name])
	}
	if len(given) > 0 {
		out["parameters"] = given
	}
	if op.in != nil {
		out["requestBody"] = object{"required": !op.optional, "content": d.content(op.in...)}
	}
	replies := object{}
	if !op.open {
		for _, status := range failing {
			replies[strconv.Itoa(status)] = object{"$ref": "#/components/responses/" + failures[status].name}
		}
	}
	for status, r := range op.out {
		reply := object{"description": r.description}
		if len(r.bodies) > 0 {
			reply["content"] = d.content(r.bodies...)
		}
		replies[strconv.Itoa(status)] = reply
	}
	out["responses"] = replies
	return out
}

func (d *document) content(bodies ...body) object {
	out := object{}
	for _, b := range bodies {
		s, ok := b.value.(object)
		if !ok {
			s = d.schema(reflect.TypeOf(b.value))
		}
		out[b.kind] = object{"schema": s}
	}
	return out
}

// types generates the schemas of Go types. Each struct, and each type with a closed list of values, has a schema under its own
// name.
type types struct {
	comments
	schemas object
	seen    map[string]reflect.Type
	err     error
}

func (t *types) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("openapi: "+format, args...)
	}
}
