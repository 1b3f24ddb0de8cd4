CREATE TABLE berths (
    id TEXT NOT NULL PRIMARY KEY,
    quay TEXT NOT NULL,
    length_m INTEGER NOT NULL,
    depth_m DECIMAL(4,1) NOT NULL,
    crane BOOLEAN NOT NULL
);
CREATE TABLE pilots (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    licence TEXT NOT NULL UNIQUE,
    password_hash TEXT NOT NULL
);
CREATE TABLE vessels (
    id INTEGER PRIMARY KEY,
    imo TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    flag TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('container', 'tanker', 'bulk', 'ferry', 'tug')),
    built INTEGER NOT NULL,
    length_m INTEGER NOT NULL,
    gross_tons INTEGER NOT NULL,
    updated_at DATETIME NOT NULL
);
CREATE TABLE port_calls (
    id INTEGER PRIMARY KEY,
    vessel_id INTEGER NOT NULL REFERENCES vessels (id),
    berth_id TEXT NOT NULL REFERENCES berths (id),
    pilot_id INTEGER NOT NULL REFERENCES pilots (id),
    arrived_at DATETIME NOT NULL,
    departed_at DATETIME,
    status TEXT NOT NULL CHECK (status IN ('alongside', 'departed')),
    updated_at DATETIME NOT NULL
);
CREATE INDEX port_calls_arrived ON port_calls (arrived_at, id);
CREATE INDEX port_calls_vessel ON port_calls (vessel_id);
CREATE TABLE cargo (
    id INTEGER PRIMARY KEY,
    call_id INTEGER NOT NULL REFERENCES port_calls (id),
    commodity TEXT NOT NULL,
    tonnes DECIMAL(10,2) NOT NULL,
    value_eur DECIMAL(14,2) NOT NULL,
    hazardous BOOLEAN NOT NULL
);
CREATE INDEX cargo_call ON cargo (call_id);
CREATE TABLE inspections (
    id INTEGER PRIMARY KEY,
    call_id INTEGER NOT NULL REFERENCES port_calls (id),
    inspected_at DATETIME NOT NULL,
    result TEXT NOT NULL CHECK (result IN ('passed', 'conditions', 'detained')),
    report TEXT NOT NULL
);
CREATE INDEX inspections_call ON inspections (call_id);
CREATE TABLE tides (
    id INTEGER PRIMARY KEY,
    at DATETIME NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('high', 'low')),
    height_m DECIMAL(4,2) NOT NULL
);
