{{ config(materialized='view') }}

SELECT scan_id, revision, completed_at, partner_name, rechnungsnummer, rechnungsdatum, waehrung, nettobetrag, bruttobetrag
FROM {{ ref('invoice_runs') }}
WHERE is_invoice
