ATTACH 'mart.duckdb' AS mart;
CREATE SOURCE a FROM 'a' WITH (files = append);
CREATE SOURCE b FROM 'b' WITH (files = 'apend');
CREATE SOURCE c FROM 'c' WITH (files = 'all');
CREATE SOURCE d FROM 'd' WITH (header);
CREATE SOURCE e FROM 'e' WITH (nullstr = ['a', 'b']);
CREATE SOURCE f FROM 'f' WITH ();
CREATE SOURCE g FROM 'g' WITH (files = getenv('MODE'));
CREATE SOURCE h FROM 'h' WITH (skip = -'1');
CREATE SOURCE i FROM 'i' WITH files = 'append';
CREATE SOURCE j FROM 'j' WITH (skip = 1 delim = ';');
CREATE SINK mart.totals PRIMARY KEY (id) AS
SELECT id, sum(amount) AS amount FROM orders GROUP BY id;
