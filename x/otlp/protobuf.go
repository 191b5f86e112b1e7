package otlp

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/stonelayer/stone/x/internal/spans"
)

// A proto is a protobuf message that is being written. Its methods omit zero values, as the protocol specifies. Field numbers
// follow opentelemetry-proto 1. Package otlp does not use the protobuf module, because every program that calls cli.Main would
// link that module just for these few messages.
type proto []byte

// The wire types of fields.
const (
	asVarint = 0
	asFixed  = 1
	asBytes  = 2
)

func (m *proto) tag(field, as int) { *m = binary.AppendUvarint(*m, uint64(field<<3|as)) }

func (m *proto) bytes(field int, b []byte) {
	if len(b) > 0 {
		m.part(field, b)
	}
}

func (m *proto) part(field int, b []byte) {
	m.tag(field, asBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *proto) varint(field int, n uint64) {
	m.tag(field, asVarint)
	*m = binary.AppendUvarint(*m, n)
}

func (m *proto) count(field, n int) {
	if n != 0 {
		m.varint(field, uint64(n))
	}
}

func (m *proto) fixed(field int, n uint64) {
	m.tag(field, asFixed)
	*m = binary.LittleEndian.AppendUint64(*m, n)
}

func (m *proto) attributes(field int, attrs attributes) {
	for _, a := range attrs {
		var pair proto
		pair.bytes(1, []byte(a.Key))
		pair.part(2, a.Value.protobuf())
		m.part(field, pair)
	}
}

// request returns an ExportTraceServiceRequest.
func request(resource attributes, all []*span) []byte {
	var req, of, about, under, by proto
	about.attributes(1, resource)
	by.bytes(1, []byte(scope))
	under.part(1, by)
	for _, sp := range all {
		under.part(2, sp.protobuf())
	}
	under.bytes(3, []byte(spans.SchemaURL))
	of.part(1, about)
	of.part(2, under)
	of.bytes(3, []byte(spans.SchemaURL))
	req.part(1, of)
	return req
}

func (sp *span) protobuf() (m proto) {
	m.bytes(1, sp.TraceID)
	m.bytes(2, sp.SpanID)
	m.bytes(4, sp.Parent)
	m.bytes(5, []byte(sp.Name))
	m.count(6, sp.Kind)
	m.fixed(7, uint64(sp.Start))
	m.fixed(8, uint64(sp.Ended))
	m.attributes(9, sp.Attrs)
	m.count(10, sp.DroppedAttrs)
	for _, h := range sp.Events {
		var event proto
		event.fixed(1, uint64(h.Time))
		event.bytes(2, []byte(h.Name))
		event.attributes(3, h.Attrs)
		m.part(11, event)
	}
	m.count(12, sp.Dropped)
	if sp.Status != nil {
		var status proto
		status.bytes(2, []byte(sp.Status.Message))
		status.count(3, sp.Status.Code)
		m.part(15, status)
	}
	return m
}

// protobuf returns the message for a value. It includes a zero value, because the field indicates the type of the value.
func (v value) protobuf() (m proto) {
	switch {
	case v.String != nil:
		m.part(1, []byte(*v.String))
	case v.Bool != nil:
		m.varint(2, map[bool]uint64{true: 1}[*v.Bool])
	case v.Int != nil:
		m.varint(3, uint64(*v.Int))
	case v.Double != nil:
		m.fixed(4, math.Float64bits(*v.Double))
	case v.Array != nil:
		var list proto
		for _, one := range v.Array.Values {
			list.part(1, one.protobuf())
		}
		m.part(5, list)
	}
	return m
}

// readResponse parses an ExportTraceServiceResponse.
func readResponse(b []byte) (rejected int, message string, err error) {
	err = fields(b, func(field int, part []byte, _ uint64) error {
		if field != 1 {
			return nil
		}
		return fields(part, func(field int, text []byte, n uint64) error {
			switch field {
			case 1:
				rejected = int(min(n, math.MaxInt32))
			case 2:
				message = string(text)
			}
			return nil
		})
	})
	return rejected, message, err
}

// statusMessage returns the message of a google.rpc.Status, or "" if b is not one.
func statusMessage(b []byte) (message string) {
	err := fields(b, func(field int, text []byte, _ uint64) error {
		if field == 2 {
			message = string(text)
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return message
}

var errProtobuf = errors.New("it is not protobuf")

// fields calls visit for each field of a message, with either the field's bytes or its number.
func fields(b []byte, visit func(field int, part []byte, n uint64) error) error {
	for len(b) > 0 {
		tag, size := binary.Uvarint(b)
		if size <= 0 {
			return errProtobuf
		}
		b = b[size:]
		var part []byte
		var n uint64
		switch tag & 7 {
		case asVarint, asBytes:
			if n, size = binary.Uvarint(b); size <= 0 {
				return errProtobuf
			}
			if b = b[size:]; tag&7 == asBytes {
				if n > uint64(len(b)) {
					return errProtobuf
				}
				part, b = b[:n], b[n:]
			}
		case asFixed:
			if len(b) < 8 {
				return errProtobuf
			}
			n, b = binary.LittleEndian.Uint64(b), b[8:]
		default:
			return errProtobuf
		}
		if err := visit(int(tag>>3), part, n); err != nil {
			return err
		}
	}
	return nil
}
