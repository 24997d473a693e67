-- What was said to calls of one tool, to be found in the record without reading all of it.
CREATE INDEX audit_tool ON audit (tool_name, number) WHERE tool_name IS NOT NULL;
