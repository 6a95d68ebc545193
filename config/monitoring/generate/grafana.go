package main

import (
	"fmt"
	"maps"
)

// dashboard is one file. Its panels stand beside each other in their order, as long as they
// fit into a line.
type dashboard struct {
	name, title string
	// kind is that whose objects can be chosen by namespace and name; none is the operator.
	kind   string
	panels []panel
}

// panel shows one thing.
type panel struct {
	title string
	// about says how to read it.
	about   string
	shape   shape
	queries []query
	// unit is Grafana's name of it, such as s or ops; empty is a plain number, and whole.
	unit string
	// none is what is shown in the place of nothing.
	none string
	// levels are the colours of a number, as Grafana's thresholds: each reaches up to the next.
	levels []fields
	// limit is drawn as a line; 0 is none.
	limit float64
	// columns are those of a table, in this order.
	columns []string
}

// query is one of PromQL, and what its lines are called.
type query struct{ expr, legend string }

// shape is how a panel looks.
type shape struct {
	kind          string // Grafana's name of it
	width, height int    // of a grid with 24 columns
	options       fields
	custom        fields  // of each field
	states        []state // that its numbers stand for
	instant       bool    // only what is now
	interval      string  // the shortest between two points; empty is that of a scrape
}

// state is what a number stands for, from 0 on. 2 stands for larger ones too.
type state struct{ text, color string }

// fields are those of a JSON object.
type fields map[string]any

var (
	number = shape{kind: "stat", width: 6, height: 4, instant: true, options: fields{
		"colorMode": "background", "graphMode": "none", "reduceOptions": fields{"calcs": []string{"lastNotNull"}},
	}}
	lines = shape{kind: "timeseries", width: 12, height: 8, options: legend, custom: fields{"fillOpacity": 0, "showPoints": "auto"}}
	areas = shape{kind: "timeseries", width: 12, height: 8, options: legend, custom: fields{
		"fillOpacity": 40, "showPoints": "auto", "stacking": fields{"mode": "normal"},
	}}
	// events are things that happen now and then: a bar says how many there were in its time.
	events = shape{kind: "timeseries", width: 12, height: 8, options: legend, interval: "5m", custom: fields{
		"drawStyle": "bars", "fillOpacity": 80, "stacking": fields{"mode": "normal"},
	}}
	table = shape{kind: "table", width: 24, height: 6, instant: true, options: fields{"showHeader": true}}
	bands = shape{kind: "state-timeline", width: 24, height: 6, states: []state{{"no", "red"}, {"yes", "green"}},
		options: fields{"mergeValues": true, "showValue": "never", "perPage": 8, "legend": legend["legend"]}}
)

// of is the shape with another width.
func (s shape) of(width int) shape {
	s.width = width
	return s
}

// standing is the shape with numbers that stand for other states.
func (s shape) standing(states ...state) shape {
	s.states = states
	return s
}

var legend = fields{
	"legend":  fields{"displayMode": "list", "placement": "bottom"},
	"tooltip": fields{"mode": "multi", "sort": "desc"},
}

var (
	calm = []fields{{"color": "blue", "value": nil}}
	// bad are the colours of a number that wants a person if it is not 0. Where nothing is
	// known it is not green.
	bad = []fields{{"color": "blue", "value": nil}, {"color": "green", "value": 0}, {"color": "red", "value": 1}}
	// just1 are those of a number that has to be 1.
	just1 = []fields{{"color": "red", "value": nil}, {"color": "green", "value": 1}, {"color": "red", "value": 2}}
)

// colors are those of lines by their names, on all dashboards.
var colors = []struct{ color, names string }{
	{"green", "ready|primary|Running|Stable|in time"},
	{"blue", "secondary|Creating|PreJob|Canary|Promoting|PostJob|CleaningUp"},
	{"yellow", "returning|Paused|Waiting"},
	{"orange", "unready|Stale|429"},
	{"red", "failed|lost|Failed|Aborted|too long|5.."},
}

// columns is how wide Grafana's grid is.
const columns = 24

// tag is what all dashboards have, by which they name each other.
const tag = "stateful-operator"

var source = fields{"type": "prometheus", "uid": "${datasource}"}

// uid is the dashboard's name in links; Grafana takes 40 letters. That of a kind ends in its
// name, so that a row of a table can lead there.
func (d dashboard) uid() string {
	if d.kind != "" {
		return tag + "-" + d.kind
	}
	return tag + "-" + d.name
}

func (d dashboard) model() fields {
	return fields{
		"uid": d.uid(), "title": d.title, "tags": []string{tag}, "schemaVersion": 39, "editable": false,
		"time": fields{"from": "now-6h", "to": "now"}, "refresh": "1m",
		"links":      []fields{{"type": "dashboards", "tags": []string{tag}, "title": "Stateful operator", "asDropdown": true, "keepTime": true}},
		"templating": fields{"list": d.variables()},
		"panels":     d.placed(),
	}
}

func (d dashboard) variables() []fields {
	all := []fields{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}}
	if d.kind == "" {
		return all
	}
	kind := fmt.Sprintf("kind=%q", d.kind)
	return append(all,
		choice("Namespace", "namespace", condition(kind)),
		choice("Name", "name", condition(kind, `namespace=~"$namespace"`)))
}

// choice is a variable with the values of a label.
func choice(title, label, of string) fields {
	return fields{
		"name": label, "label": title, "type": "query", "datasource": source, "query": fmt.Sprintf("label_values(%s, %s)", of, label),
		"multi": true, "includeAll": true, "allValue": ".*", "current": fields{"text": []string{"All"}, "value": []string{"$__all"}},
		"refresh": 2, // when the time range changes
		"sort":    1,
	}
}

// placed are the panels, each in its place.
func (d dashboard) placed() []fields {
	var all []fields
	x, y, tallest := 0, 0, 0
	for i, p := range d.panels {
		if x+p.shape.width > columns {
			x, y, tallest = 0, y+tallest, 0
		}
		model := p.model()
		model["id"] = i + 1
		model["gridPos"] = fields{"x": x, "y": y, "w": p.shape.width, "h": p.shape.height}
		all = append(all, model)
		x, tallest = x+p.shape.width, max(tallest, p.shape.height)
	}
	return all
}

func (p panel) model() fields {
	model := fields{
		"type": p.shape.kind, "title": p.title, "description": p.about, "datasource": source,
		"options": p.shape.options, "targets": p.targets(),
		"fieldConfig": fields{"defaults": p.defaults(), "overrides": p.overrides()},
	}
	if p.shape.interval != "" {
		model["interval"] = p.shape.interval
	}
	if p.shape.kind == table.kind {
		model["transformations"] = p.ordered()
	}
	return model
}

// defaults are of all lines of a panel.
func (p panel) defaults() fields {
	defaults := fields{}
	if p.none != "" {
		defaults["noValue"] = p.none
	}
	switch p.shape.kind {
	case table.kind:
	case number.kind:
		defaults["thresholds"] = fields{"mode": "absolute", "steps": p.levels}
	case bands.kind:
		defaults["mappings"], defaults["color"] = p.mappings(), fields{"mode": "fixed"} // else there is no legend
	default:
		defaults["unit"], defaults["min"], defaults["custom"] = p.unit, 0, p.custom()
		if p.unit == "" {
			defaults["decimals"] = 0
		}
		if p.limit != 0 {
			defaults["thresholds"] = fields{"mode": "absolute", "steps": []fields{{"color": "transparent", "value": nil}, {"color": "red", "value": p.limit}}}
		}
	}
	return defaults
}

// custom are a shape's fields, with a scale on which 0 is seen to be at the bottom.
func (p panel) custom() fields {
	custom := fields{}
	maps.Copy(custom, p.shape.custom)
	if p.unit == "" {
		custom["axisSoftMax"] = 1
	}
	if p.limit != 0 {
		custom["axisSoftMax"], custom["thresholdsStyle"] = p.limit, fields{"mode": "dashed"}
	}
	return custom
}

// mappings say what the numbers of bands stand for.
func (p panel) mappings() []fields {
	var all []fields
	for i, s := range p.shape.states {
		is := fields{"text": s.text, "color": s.color}
		if i > 1 {
			all = append(all, fields{"type": "range", "options": fields{"from": i, "to": nil, "result": is}})
			continue
		}
		all = append(all, fields{"type": "value", "options": fields{fmt.Sprint(i): is}})
	}
	return all
}

// overrides are of lines, or of columns, by their names.
func (p panel) overrides() []fields {
	all := []fields{}
	switch p.shape.kind {
	case table.kind:
		// Or an empty cell says what stands in the place of no rows.
		all = append(all, override("byType", "string", fields{"id": "noValue", "value": ""}))
		for _, name := range p.columns {
			if properties, special := cells[name]; special {
				all = append(all, override("byName", fieldOf(name), properties...))
			}
		}
	case areas.kind:
		for _, c := range colors {
			all = append(all, override("byRegexp", "/^("+c.names+")$/", fields{"id": "color", "value": fields{"mode": "fixed", "fixedColor": c.color}}))
		}
	}
	return all
}

func override(by, name string, properties ...fields) fields {
	return fields{"matcher": fields{"id": by, "options": name}, "properties": properties}
}

// cells are how columns with these names look.
var cells = map[string][]fields{
	// The name of an alert leads to its page.
	"alertname": {{"id": "links", "value": []fields{{
		"title": "Runbook", "targetBlank": true,
		"url": "https://github.com/stateful-operator/stateful-operator/blob/main/docs/runbooks/${__value.raw}.md",
	}}}},
	// The object of a condition leads to the dashboard of its kind.
	"object": {{"id": "links", "value": []fields{{
		"title": "Dashboard", "url": "/d/" + tag + "-${__data.fields.kind}?var-namespace=${__data.fields.namespace}&var-name=${__value.raw}",
	}}}},
	"severity": {width(100), painted("color-background"), mapped(fields{
		"critical": fields{"color": "red"}, "warning": fields{"color": "orange"},
	})},
	"status": {width(100), painted("color-text"), mapped(fields{
		"0": fields{"text": "not True", "color": "red"}, "1": fields{"text": "True", "color": "orange"},
	})},
	"kind":    {width(190)},
	"type":    {width(170)},
	"version": {width(160)},
	"what":    {width(220)},
}

func width(pixels int) fields { return fields{"id": "custom.width", "value": pixels} }

func painted(how string) fields {
	return fields{"id": "custom.cellOptions", "value": fields{"type": how}}
}

// mapped says how values look.
func mapped(values fields) fields {
	return fields{"id": "mappings", "value": []fields{{"type": "value", "options": values}}}
}

// fieldOf is what Prometheus' answer calls a column.
func fieldOf(column string) string {
	switch column {
	case "status", "how many":
		return "Value"
	case "object": // the name of one whose kind has a dashboard
		return "name"
	}
	return column
}

// ordered puts the columns of a table in their order, and hides the others.
func (p panel) ordered() []fields {
	hidden, index, names := fields{"Time": true, "Value": true, "kind": true}, fields{}, fields{}
	for i, column := range p.columns {
		name := fieldOf(column)
		delete(hidden, name)
		index[name] = i
		if name == "Value" {
			names[name] = column
		}
	}
	all := []fields{{"id": "organize", "options": fields{"excludeByName": hidden, "indexByName": index, "renameByName": names}}}
	if p.columns[0] == "severity" {
		all = append(all, fields{"id": "sortBy", "options": fields{"sort": []fields{{"field": "severity"}}}})
	}
	return all
}

func (p panel) targets() []fields {
	var all []fields
	for i, q := range p.queries {
		target := fields{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend,
			"instant": p.shape.instant, "range": !p.shape.instant, "format": "time_series",
		}
		if p.shape.kind == table.kind {
			target["format"] = "table"
		}
		all = append(all, target)
	}
	return all
}
