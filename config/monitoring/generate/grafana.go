package main

import (
	"fmt"
	"maps"
)

// dashboard is one file. Its panels are placed from left to right in their order, and wrap to the
// next line.
type dashboard struct {
	name, title string
	// kind is the kind whose objects can be selected by namespace and name. It is empty for the
	// operator.
	kind   string
	panels []panel
}

// panel is one panel of a dashboard.
type panel struct {
	title string
	// about explains how to read it.
	about   string
	shape   shape
	queries []query
	// unit is the name of the unit in Grafana, such as s or ops. Empty means an integer without a
	// unit.
	unit string
	// none is shown if there is no value.
	none string
	// levels are the colours of a number, as Grafana's thresholds: each begins at its value.
	levels []fields
	// limit is drawn as a line; 0 means none.
	limit float64
	// columns are the columns of a table, in this order.
	columns []string
}

// query is a PromQL query with its legend.
type query struct{ expr, legend string }

// shape is the appearance of a panel.
type shape struct {
	kind          string // Grafana's name of the panel type
	width, height int    // in a grid with 24 columns
	options       fields
	custom        fields  // custom properties of each field
	states        []state // states that its numbers stand for
	instant       bool    // only the latest value
	interval      string  // min interval between two points; the default is the scrape interval
}

// state is the meaning of a number, beginning with 0. The state for 2 also applies to larger
// numbers.
type state struct{ text, color string }

// fields are the fields of a JSON object.
type fields map[string]any

var (
	number = shape{kind: "stat", width: 6, height: 4, instant: true, options: fields{
		"colorMode": "background", "graphMode": "none", "reduceOptions": fields{"calcs": []string{"lastNotNull"}},
	}}
	lines = shape{kind: "timeseries", width: 12, height: 8, options: legend, custom: fields{"fillOpacity": 0, "showPoints": "auto"}}
	areas = shape{kind: "timeseries", width: 12, height: 8, options: legend, custom: fields{
		"fillOpacity": 40, "showPoints": "auto", "stacking": fields{"mode": "normal"},
	}}
	// events shows rare events: each bar is the number of events in its interval.
	events = shape{kind: "timeseries", width: 12, height: 8, options: legend, interval: "5m", custom: fields{
		"drawStyle": "bars", "fillOpacity": 80, "stacking": fields{"mode": "normal"},
	}}
	table = shape{kind: "table", width: 24, height: 6, instant: true, options: fields{"showHeader": true}}
	bands = shape{kind: "state-timeline", width: 24, height: 6, states: []state{{"no", "red"}, {"yes", "green"}},
		options: fields{"mergeValues": true, "showValue": "never", "perPage": 8, "legend": legend["legend"]}}
)

// of returns the shape with another width.
func (s shape) of(width int) shape {
	s.width = width
	return s
}

// standing returns the shape with other states.
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
	// bad are the colours of a number that needs attention if it is not 0. It is not green if the
	// value is unknown.
	bad = []fields{{"color": "blue", "value": nil}, {"color": "green", "value": 0}, {"color": "red", "value": 1}}
	// just1 are the colours of a number that must be 1.
	just1 = []fields{{"color": "red", "value": nil}, {"color": "green", "value": 1}, {"color": "red", "value": 2}}
)

// colors are the colours of lines by their names, on all dashboards.
var colors = []struct{ color, names string }{
	{"green", "ready|primary|Running|Stable|in time"},
	{"blue", "secondary|Creating|PreJob|Canary|Promoting|PostJob|CleaningUp"},
	{"yellow", "returning|Paused|Waiting"},
	{"orange", "unready|Stale|429"},
	{"red", "failed|lost|Failed|Aborted|too long|5.."},
}

// columns is the width of Grafana's grid.
const columns = 24

// tag is a tag of all dashboards, which is used for links between them.
const tag = "stateful-operator"

var source = fields{"type": "prometheus", "uid": "${datasource}"}

// uid returns the dashboard's ID in links, which Grafana limits to 40 letters. The ID of a kind's
// dashboard ends with the kind, so that a row of a table can link to it.
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

// choice returns a variable with the values of a label.
func choice(title, label, of string) fields {
	return fields{
		"name": label, "label": title, "type": "query", "datasource": source, "query": fmt.Sprintf("label_values(%s, %s)", of, label),
		"multi": true, "includeAll": true, "allValue": ".*", "current": fields{"text": []string{"All"}, "value": []string{"$__all"}},
		"refresh": 2, // when the time range changes
		"sort":    1,
	}
}

// placed returns the panels with their positions.
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

// defaults returns the defaults of all fields of a panel.
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
		defaults["mappings"], defaults["color"] = p.mappings(), fields{"mode": "fixed"} // otherwise there is no legend
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

// custom returns a shape's custom properties, with a scale that shows 0 at the bottom.
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

// mappings returns the states of the numbers of bands.
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

// overrides returns the overrides of lines or columns, by their names.
func (p panel) overrides() []fields {
	all := []fields{}
	switch p.shape.kind {
	case table.kind:
		// Without this, an empty cell shows the text for an empty table.
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

// cells are the properties of columns with these names.
var cells = map[string][]fields{
	// The name of an alert links to its runbook.
	"alertname": {{"id": "links", "value": []fields{{
		"title": "Runbook", "targetBlank": true,
		"url": "https://github.com/stateful-operator/stateful-operator/blob/main/docs/runbooks/${__value.raw}.md",
	}}}},
	// The object of a condition links to the dashboard of its kind.
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

// mapped returns a mapping of values to their appearance.
func mapped(values fields) fields {
	return fields{"id": "mappings", "value": []fields{{"type": "value", "options": values}}}
}

// fieldOf returns the name of a column in Prometheus' response.
func fieldOf(column string) string {
	switch column {
	case "status", "count":
		return "Value"
	case "object": // the name of an object whose kind has a dashboard
		return "name"
	}
	return column
}

// ordered returns a transformation that sorts the columns of a table, and hides the others.
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
