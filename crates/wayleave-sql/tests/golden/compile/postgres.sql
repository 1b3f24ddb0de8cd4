-- every row
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t ORDER BY t."id" LIMIT 26

-- one record
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE t."id" = $1::int8 ORDER BY t."id" LIMIT 26
--   Integer(7)

-- text is bound, never written
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE (t."na""me`" = $1::text AND t."na""me`" COLLATE "C" = $2::text) ORDER BY t."id" LIMIT 26
--   Text("'; DROP TABLE t; -- \" ` \\")
--   Text("'; DROP TABLE t; -- \" ` \\")

-- text greater than a text with a NUL in it
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE t."na""me`" COLLATE "C" > $1::text ORDER BY t."id" LIMIT 26
--   Text("a")

-- a beginning and a part
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE (t."na""me`" COLLATE "C" >= $1::text AND t."na""me`" COLLATE "C" < $2::text) AND strpos(t."na""me`" COLLATE "C", $3::text) > 0 ORDER BY t."id" LIMIT 26
--   Text("50%_")
--   Text("50%`")
--   Text("%")

-- any of, none of, none at all
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE ((t."id" = $1::int8 OR 1 = 0) OR t."na""me`" COLLATE "C" NOT IN ($2::text, $3::text) OR t."na""me`" IS NULL) ORDER BY t."id" LIMIT 26
--   Integer(1)
--   Text("a")
--   Text("b")

-- decimals, numbers, times and truth
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."active" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."at" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."day" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."ratio" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE t."price" >= $1::text::numeric AND t."ratio" < $2::float8 AND t."day" <> $3::date AND t."at" <= $4::timestamptz AND t."active" = $5::bool AND (1 / (1 - CASE WHEN (t."price" >= $6::text::numeric AND t."ratio" < $7::float8 AND t."day" <> $8::date AND t."at" <= $9::timestamptz AND t."active" = $10::bool) THEN CASE WHEN ((t."price" - t."price") <> 'NaN' AND (t."ratio" - t."ratio") <> 'NaN' AND t."day" NOT IN ('infinity', '-infinity') AND t."at" NOT IN ('infinity', '-infinity')) THEN 0 ELSE 1 END ELSE 0 END)) IS NOT NULL ORDER BY t."id" LIMIT 26
--   Text("0.10000000000000000000000000000000001")
--   Real(0.5)
--   Date(0)
--   Datetime(1)
--   Boolean(true)
--   Text("0.10000000000000000000000000000000001")
--   Real(0.5)
--   Date(0)
--   Datetime(1)
--   Boolean(true)

-- a page by key
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE t."id" > $1::int8 ORDER BY t."id" LIMIT 26
--   Integer(7)

-- a page by two columns that are never NULL
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."small" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE (t."small", t."id") < ($1::int8, $2::int8) ORDER BY t."small" DESC, t."id" DESC LIMIT 26
--   Integer(3)
--   Integer(7)

-- a page by a column that may be NULL, downwards
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."at" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE ((t."at" < $1::timestamptz OR t."at" IS NULL) OR (t."at" = $2::timestamptz AND t."id" > $3::int8)) ORDER BY t."at" DESC NULLS LAST, t."id" LIMIT 26
--   Datetime(1)
--   Datetime(1)
--   Integer(7)

-- a page after a NULL
SELECT t."id", t."na""me`", (t."price"::text), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE (1 = 0 OR (t."na""me`" IS NULL AND t."id" > $1::int8)) ORDER BY t."na""me`" COLLATE "C", t."id" LIMIT 26
--   Integer(7)

-- the first of each
SELECT c0 FROM (SELECT t."id" AS c0, ROW_NUMBER() OVER (PARTITION BY t."small" ORDER BY t."id") AS place, ROW_NUMBER() OVER ( ORDER BY t."id") AS position, CASE WHEN 1 = 1 THEN 1 ELSE 0 END AS later FROM "pub""lic"."the ""table` '" AS t) AS r WHERE place <= 3 AND later = 1 ORDER BY position LIMIT 30

-- a count
SELECT COUNT(*), (SELECT t."id" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM "pub""lic"."the ""table` '" AS t WHERE t."id" > $1::int8
--   Integer(0)

-- measures of everything
SELECT COUNT(*) AS v0, COUNT(DISTINCT m1) AS v1, SUM(m2)::text AS v2, SUM(m3)::text, COUNT(m3) AS v3, SUM(m4) AS v4, MIN(m5) AS v5, MAX(m6) AS v6, (SELECT t."at" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."id" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."na""me`" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."ratio" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM (SELECT t."na""me`" COLLATE "C" AS m1, t."id" AS m2, t."price" AS m3, t."ratio" AS m4, t."na""me`" COLLATE "C" AS m5, t."at" AS m6 FROM "pub""lic"."the ""table` '" AS t WHERE (1 / (1 - CASE WHEN (1 = 1) THEN CASE WHEN ((t."at" IS NULL OR t."at" NOT IN ('infinity', '-infinity'))) THEN 0 ELSE 1 END ELSE 0 END)) IS NOT NULL) AS g LIMIT 1

-- groups
SELECT k0 AS v0, k1 AS v1, SUM(m0)::text, COUNT(m0) AS v2, (SELECT t."active" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."id" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."na""me`" FROM "pub""lic"."the ""table` '" AS t LIMIT 0), (SELECT t."price" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM (SELECT t."na""me`" COLLATE "C" AS k0, t."active" AS k1, t."price" AS m0 FROM "pub""lic"."the ""table` '" AS t WHERE t."id" > $1::int8) AS g GROUP BY k0, k1 ORDER BY sign(SUM(m0)::numeric) * div(abs(SUM(m0)::numeric) * 2000000 + COUNT(m0)::numeric, nullif(2 * COUNT(m0)::numeric, 0)) DESC NULLS LAST, k0, k1 LIMIT 11
--   Integer(0)

-- periods of a zone
SELECT k0 AS v0, COUNT(*) AS v1, (SELECT t."at" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM (SELECT date_trunc('quarter', (t."at" AT TIME ZONE $1::text))::date AS k0 FROM "pub""lic"."the ""table` '" AS t WHERE (1 / (1 - CASE WHEN (1 = 1) THEN CASE WHEN ((t."at" IS NULL OR t."at" NOT IN ('infinity', '-infinity'))) THEN 0 ELSE 1 END ELSE 0 END)) IS NOT NULL) AS g GROUP BY k0 ORDER BY k0 LIMIT 11
--   Text("Europe/Berlin")

-- hours of a zone
SELECT k0 AS v0, COUNT(*) AS v1, (SELECT t."at" FROM "pub""lic"."the ""table` '" AS t LIMIT 0) FROM (SELECT (t."at" - ((t."at" AT TIME ZONE $1::text) - date_trunc('hour', (t."at" AT TIME ZONE $2::text)))) AS k0 FROM "pub""lic"."the ""table` '" AS t WHERE (1 / (1 - CASE WHEN (1 = 1) THEN CASE WHEN ((t."at" IS NULL OR t."at" NOT IN ('infinity', '-infinity'))) THEN 0 ELSE 1 END ELSE 0 END)) IS NOT NULL) AS g GROUP BY k0 ORDER BY k0 LIMIT 11
--   Text("Europe/Berlin")
--   Text("Europe/Berlin")

